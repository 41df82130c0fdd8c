extension PageFile {
  private static let html = "text/html; charset=utf-8"
  private static let css = "text/css; charset=utf-8"
  private static let script = "text/javascript; charset=utf-8"
  private static let svg = "image/svg+xml"

  /// By path. The package manager makes one constant of each file that Package.swift names.
  static let all: [String: PageFile] = [
    "/": PageFile(html, PackageResources.start_html),
    "/start/start.css": PageFile(css, PackageResources.start_css),
    "/start/start.js": PageFile(script, PackageResources.start_js),
    "/chat": PageFile(html, PackageResources.chat_html),
    "/chat/": PageFile(html, PackageResources.chat_html),
    "/chat/actions.js": PageFile(script, PackageResources.actions_js),
    "/chat/chat.css": PageFile(css, PackageResources.chat_css),
    "/chat/composer.js": PageFile(script, PackageResources.composer_js),
    "/chat/files.js": PageFile(script, PackageResources.files_js),
    "/chat/icon.svg": PageFile(svg, PackageResources.icon_svg),
    "/chat/log.js": PageFile(script, PackageResources.log_js),
    "/chat/main.js": PageFile(script, PackageResources.main_js),
    "/chat/mentions.js": PageFile(script, PackageResources.mentions_js),
    "/chat/menu.js": PageFile(script, PackageResources.menu_js),
    "/chat/net.js": PageFile(script, PackageResources.net_js),
    "/chat/outbox.js": PageFile(script, PackageResources.outbox_js),
    "/chat/reading.js": PageFile(script, PackageResources.reading_js),
    "/chat/room.js": PageFile(script, PackageResources.room_js),
    "/chat/rooms.js": PageFile(script, PackageResources.rooms_js),
    "/chat/row.js": PageFile(script, PackageResources.row_js),
    "/chat/search.js": PageFile(script, PackageResources.search_js),
    "/chat/text.js": PageFile(script, PackageResources.text_js),
    "/chat/timeline.js": PageFile(script, PackageResources.timeline_js),
    "/chat/tray.js": PageFile(script, PackageResources.tray_js),
    "/chat/words.js": PageFile(script, PackageResources.words_js),
  ]
}
