/// What roles may do. Nobody is held to it here: whoever has the account's credentials may do everything.
enum RolePermissions {
  static let standard: [(name: String, type: String, permissions: [String])] = [
    (
      "channel user", "conversation",
      ["sendMessage", "sendMediaMessage", "leaveConversation", "editOwnMessage", "deleteOwnMessage"]
    ),
    (
      "channel admin", "conversation",
      [
        "sendMessage", "sendMediaMessage", "leaveConversation", "editOwnMessage", "editAnyMessage", "deleteOwnMessage",
        "deleteAnyMessage", "editConversationName", "editConversationAttributes", "addParticipant",
        "removeParticipant", "deleteConversation",
      ]
    ),
    ("service user", "service", ["createConversation", "joinConversation", "editOwnUserInfo"]),
    ("service admin", "service", ["createConversation", "joinConversation", "editOwnUserInfo", "editAnyUserInfo"]),
  ]
}
