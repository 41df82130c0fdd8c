extension PageFile {
  /// By path. The package manager makes one constant of each file that Package.swift names.
  static let all: [String: PageFile] = [
    "/": PageFile(.markup, PackageResources.start_html),
    "/start/start.css": PageFile(.style, PackageResources.start_css),
    "/start/start.js": PageFile(.script, PackageResources.start_js),
    "/chat": PageFile(.markup, PackageResources.chat_html),
    "/chat/": PageFile(.markup, PackageResources.chat_html),
    "/chat/chat.css": PageFile(.style, PackageResources.chat_css),
    "/chat/drops.js": PageFile(.script, chat.importing(PackageResources.drops_js)),
    "/chat/early.js": PageFile(.script, PackageResources.early_js),
    "/chat/extra.css": PageFile(.style, PackageResources.extra_css),
    "/chat/icon.svg": PageFile(.picture, PackageResources.icon_svg),
    "/chat/jump.js": PageFile(.script, chat.importing(PackageResources.jump_js)),
    "/chat/main.js": PageFile(.script, chat.source),
    "/chat/mentions.js": PageFile(.script, chat.importing(PackageResources.mentions_js)),
    "/chat/menu.js": PageFile(.script, chat.importing(PackageResources.menu_js)),
    "/chat/notices.js": PageFile(.script, chat.importing(PackageResources.notices_js)),
    "/chat/search.js": PageFile(.script, chat.importing(PackageResources.search_js)),
    "/chat/sign-in.js": PageFile(.script, chat.importing(PackageResources.sign_in_js)),
    "/chat/tray.js": PageFile(.script, chat.importing(PackageResources.tray_js)),
    "/chat/viewer.js": PageFile(.script, chat.importing(PackageResources.viewer_js)),
    "/chat/words-ja.js": PageFile(.script, PackageResources.words_ja_js),
  ]

  /// What the chat page needs at once.
  private static let chat = ModuleBundle(
    "main.js",
    of: [
      ("words.js", PackageResources.words_js), ("text.js", PackageResources.text_js),
      ("net.js", PackageResources.net_js), ("timeline.js", PackageResources.timeline_js),
      ("log.js", PackageResources.log_js), ("row.js", PackageResources.row_js),
      ("outbox.js", PackageResources.outbox_js), ("reading.js", PackageResources.reading_js),
      ("rooms.js", PackageResources.rooms_js), ("composer.js", PackageResources.composer_js),
      ("actions.js", PackageResources.actions_js), ("room.js", PackageResources.room_js),
      ("main.js", PackageResources.main_js),
    ])
}
