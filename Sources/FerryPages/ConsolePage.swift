package import FerryTransport

/// The console, a page on the relay's listener: its files and what a browser must be told about them. What it shows
/// it asks of the relay by itself, once somebody has given it the token.
package enum ConsolePage {
  /// Answers what asks for the page or a file of it; nil when it asks for something else.
  package static func answer(_ request: HTTPRequest) -> HTTPResponse? {
    let path = request.path
    guard path == "/" || path.hasPrefix("/console/") else { return nil }
    guard request.method == "GET" || request.method == "HEAD" else {
      var refusal = HTTPResponse.text("Pages are only read.\n", status: 405)
      refusal.headers.set("Allow", "GET, HEAD")
      return refusal
    }
    guard let file = PageFile.console[path] else { return .text("There is no such page.\n", status: 404) }
    var response = file.answer(request, policy: ContentPolicy.console)
    response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
    response.headers.set("X-Frame-Options", "DENY")
    return response
  }
}

extension PageFile {
  /// The console's, by path.
  static let console: [String: PageFile] = [
    "/": PageFile(.markup, PackageResources.console_html),
    "/console/console.css": PageFile(.style, PackageResources.console_css),
    "/console/console.js": PageFile(.script, PackageResources.console_js),
    "/console/console.svg": PageFile(.picture, PackageResources.console_svg),
    "/console/dead.js": PageFile(.script, PackageResources.dead_js),
    "/console/dom.js": PageFile(.script, PackageResources.dom_js),
    "/console/events.js": PageFile(.script, PackageResources.events_js),
    "/console/health.js": PageFile(.script, PackageResources.health_js),
    "/console/lanes.js": PageFile(.script, PackageResources.lanes_js),
    "/console/map.js": PageFile(.script, PackageResources.map_js),
    "/console/overview.js": PageFile(.script, PackageResources.overview_js),
    "/console/plot.js": PageFile(.script, PackageResources.plot_js),
    "/console/probe.js": PageFile(.script, PackageResources.probe_js),
    "/console/service.js": PageFile(.script, PackageResources.service_js),
    "/console/settings.js": PageFile(.script, PackageResources.settings_js),
    "/console/table.js": PageFile(.script, PackageResources.table_js),
    "/console/trace.js": PageFile(.script, PackageResources.trace_js),
    "/console/vocabulary.js": PageFile(.script, PackageResources.vocabulary_js),
  ]
}
