/// Kinds of apps of which there are many, each with its names and habits.
package enum Preset: String, Hashable, Sendable, CaseIterable {
  /// The anonymous chat of the iOS tutorials: ids are numbers in messages and strings in receipts.
  case anonymousChat = "anonymous_chat"
  /// The messenger that many Next.js apps are copies of: whole rows, read by those in their list `seen`.
  case nextjsMessenger = "nextjs_messenger"
  /// The Laravel package: messages are HTML, and everything else is a client event.
  case chatify
  /// Laravel's broadcasting: events are PHP classes, typing is whispered.
  case laravelEcho = "laravel_echo"

  func adjust(_ profile: inout Profile) {
    switch self {
    case .anonymousChat: profile.ids = .integer
    case .nextjsMessenger: Self.nextjsMessenger(&profile)
    case .chatify: Self.chatify(&profile)
    case .laravelEcho: Self.laravelEcho(&profile)
    }
  }

  private static func nextjsMessenger(_ profile: inout Profile) {
    profile.events.message = ["messages:new", "message:new", "messages:create"]
    profile.events.edit = ["message:update", "message_updated"]
    profile.events.delete = ["message:remove", "message_deleted"]
    profile.events.read = ["message_read", "message:update"]
    profile.fields.id = ["id", "_id"]
    profile.fields.text = ["body", "text"]
    profile.fields.sender = ["sender", "senderId"]
    profile.fields.time = ["createdAt", "created_at"]
    profile.fields.image = ["image"]
  }

  private static func chatify(_ profile: inout Profile) {
    profile.html = true
    profile.events.message = ["messaging"]
    profile.events.edit = ["message_updated"]
    profile.events.delete = ["client-messageDelete", "message_deleted"]
    profile.events.typing = ["client-typing", "user_typing"]
    // The same event, in which `typing` is false.
    profile.events.typingStopped = ["client-typing", "user_stopped_typing"]
    profile.events.read = ["client-seen", "message_read"]
    profile.fields.id = ["id", "message_id"]
    profile.fields.text = ["message"]
    profile.fields.sender = ["from_id", "user_id"]
    profile.fields.image = ["attachment"]
  }

  private static func laravelEcho(_ profile: inout Profile) {
    let classes = #"App\Events\"#
    profile.events.message = [classes + "MessageSent", "MessageSent", "message.sent", "NewMessage", "MessageCreated"]
    profile.events.edit = [
      classes + "MessageUpdated", "MessageUpdated", "MessageEdited", "message.updated", "client-MessageUpdated",
    ]
    profile.events.delete = [classes + "MessageDeleted", "MessageDeleted", "message.deleted", "client-MessageDeleted"]
    profile.events.typing = ["client-typing", "UserTyping", "user.typing"]
    profile.events.typingStopped = ["client-stop-typing", "UserStoppedTyping", "user.stopped.typing"]
    profile.events.delivered = [classes + "MessageDelivered", "MessageDelivered", "message.delivered"]
    profile.events.read = [classes + "MessageRead", "MessageRead", "message.read", "client-MessageRead"]
    profile.events.reaction = [classes + "MessageReacted", "MessageReacted", "message.reacted"]
    profile.events.join = [classes + "UserJoined", "UserJoined", "user.joined"]
    profile.events.leave = [classes + "UserLeft", "UserLeft", "user.left"]
    profile.fields.id = ["message.id", "id", "message_id", "messageId"]
    profile.fields.text = [
      "message.message", "message.body", "message.content", "message.text", "message", "body", "content", "text",
    ]
    profile.fields.sender = [
      "user", "message.user", "message.sender", "sender", "message.user_id", "user_id", "username", "name",
    ]
    profile.fields.time = ["message.created_at", "created_at", "message.createdAt", "timestamp"]
    profile.fields.image = ["message.image", "message.image_url", "image", "image_url"]
  }
}
