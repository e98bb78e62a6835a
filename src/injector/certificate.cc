// SPDX-License-Identifier: GPL-2.0-or-later
#include "injector/certificate.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "injector/log.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::injector {
namespace {

std::string words_of_openssl() {
  constexpr std::size_t longest = 256;
  std::string text(longest, '\0');
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "it cannot be read";
  if (const char* reason = ERR_reason_error_string(error)) return reason;
  ERR_error_string_n(error, text.data(), text.size());
  return text.c_str();
}

// It is used all the same: whoever connects has a clock of its own.
void warn_of_dates(const X509* certificate, const std::string& file) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    warn(fmt::format("{}: the certificate has expired: the API server will not accept it", excerpt(file)));
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    warn(fmt::format("{}: the certificate is not valid yet: the API server will not accept it", excerpt(file)));
}

}  // namespace

std::shared_ptr<boost::asio::ssl::context> load(const CertificateFiles& files) {
  namespace ssl = boost::asio::ssl;
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* context = made->native_handle();
  const auto needs_pass_phrase = std::make_shared<bool>(false);
  const auto refuse = [&](const std::string& file) {
    const std::string words = words_of_openssl();
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(file),
                                             *needs_pass_phrase ? "expected a key without a pass phrase" : words));
  };
  // A server has nobody to ask.
  made->set_password_callback([needs_pass_phrase](std::size_t, ssl::context::password_purpose) {
    *needs_pass_phrase = true;
    return std::string();
  });
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Renegotiation costs the server more than the client.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // 16 KiB a connection less while nothing is sent.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) refuse(files.certificate);
  // Compares it with the certificate.
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) refuse(files.key);
  warn_of_dates(SSL_CTX_get0_certificate(context), files.certificate);
  return made;
}

}  // namespace sidetrack::injector
