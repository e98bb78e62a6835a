// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/injector/certificate.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <string_view>
#include <utility>

#include "inject/injector/log.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/file.h"

namespace sidetrack::injector {
namespace {

std::string read(const std::string& file) {
  host::FileText read = host::read_file(-1, file);
  if (!read.text) throw Error(ExitCode::usage, fmt::format("{}: cannot be read: {}", excerpt(file), read.problem));
  return std::move(*read.text);
}

// It is used all the same: whoever connects has a clock of its own.
void warn_of_dates(const X509* certificate, const std::string& file) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    warn(fmt::format("{}: the certificate has expired: the API server will not accept it", excerpt(file)));
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    warn(fmt::format("{}: the certificate is not valid yet: the API server will not accept it", excerpt(file)));
}

}  // namespace

CertificateTexts read(const CertificateFiles& files) { return {read(files.certificate), read(files.key)}; }

std::shared_ptr<boost::asio::ssl::context> load(const CertificateTexts& texts, const CertificateFiles& files) {
  namespace asio = boost::asio;
  namespace ssl = boost::asio::ssl;
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* context = made->native_handle();
  const auto needs_pass_phrase = std::make_shared<bool>(false);
  boost::system::error_code error;
  const auto refuse = [&](const std::string& file, std::string_view expected) {
    if (*needs_pass_phrase)
      throw Error(ExitCode::usage, fmt::format("{}: expected a key without a pass phrase", excerpt(file)));
    const std::string words = error ? ": " + error.message() : "";
    throw Error(ExitCode::usage, fmt::format("{}: expected {}, PEM{}", excerpt(file), expected, words));
  };
  // A server has nobody to ask.
  made->set_password_callback([needs_pass_phrase](std::size_t, ssl::context::password_purpose) {
    *needs_pass_phrase = true;
    return std::string();
  });
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Renegotiation costs the server more than the client.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // 16 KiB a connection less while nothing is sent.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  made->use_certificate_chain(asio::buffer(texts.certificate), error);
  if (error || SSL_CTX_get0_certificate(context) == nullptr) refuse(files.certificate, "a certificate");
  // Compares it with the certificate.
  made->use_private_key(asio::buffer(texts.key), ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context) != 1) refuse(files.key, "the private key of the certificate");
  warn_of_dates(SSL_CTX_get0_certificate(context), files.certificate);
  return made;
}

}  // namespace sidetrack::injector
