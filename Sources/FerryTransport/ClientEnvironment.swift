import Glibc

/// What the environment says about proxies and certificates, under the names that curl's command line goes by.
struct ClientEnvironment: Sendable {
  let noProxy: String
  let certificateFile: String?
  let certificateDirectory: String?
  private let httpProxy: String?
  private let httpsProxy: String?

  init(_ value: @escaping (String) -> String? = { name in getenv(name).map { String(cString: $0) } }) {
    let first = { (names: [String]) in names.lazy.compactMap(value).first { !$0.isEmpty } }
    let listed = first(["no_proxy", "NO_PROXY"])
    noProxy = listed == "*" ? "*" : ([listed, "localhost,127.0.0.0/8,::1"].compactMap { $0 }).joined(separator: ",")
    certificateFile = first(["CURL_CA_BUNDLE", "SSL_CERT_FILE"])
    certificateDirectory = first(["SSL_CERT_DIR"])
    // Upper-case HTTP_PROXY can be set by a request's header in CGI programs, so libcurl does not read it either.
    httpProxy = first(["http_proxy", "all_proxy", "ALL_PROXY"])
    httpsProxy = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
  }

  func proxy(for scheme: String) -> String? { scheme == "https" ? httpsProxy : httpProxy }
}
