// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace sidetrack::injector {

struct CertificateFiles {
  std::string certificate;  // PEM, with the chain
  std::string key;          // PEM
};

struct CertificateTexts {
  std::string certificate;
  std::string key;
  bool operator==(const CertificateTexts&) const = default;
};

// What the files hold now; a Secret's are links, which are turned to other files. Throws Error (usage).
[[nodiscard]] CertificateTexts read(const CertificateFiles& files);

// What connections are made with: TLS 1.2 or later. Throws Error (usage) that names the file and what OpenSSL says,
// also if the key is not that of the certificate. Warns of a certificate that is not valid now.
[[nodiscard]] std::shared_ptr<boost::asio::ssl::context> load(const CertificateTexts& texts,
                                                              const CertificateFiles& files);

}  // namespace sidetrack::injector
