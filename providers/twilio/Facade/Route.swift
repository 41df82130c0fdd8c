/// What a path under `/v1` names.
///
/// Names of conversations and users may hold slashes, which the official library sends as they are: what follows a name
/// is found by the words that can follow it.
enum Route: Equatable {
  case conversations
  case conversation(String)
  case participants(String)
  case participant(String, String)
  case messages(String)
  case message(String, String)
  case receipts(String, String)
  case receipt(String, String, String)
  case webhooks(String)
  case webhook(String, String)
  case users
  case user(String)
  case userConversations(String)
  case userConversation(String, String)
  case participantConversations
  case conversationWithParticipants
  case roles
  case role(String)
  case services
  case service(String)
  case configuration
  case webhookConfiguration
  case media
  case mediaRecord(String)
  case mediaContent(String)
  case mediaSet

  /// `path` follows `/v1` or `/v1/Services/IS`.
  init?(_ path: some Collection<String>, inService: Bool) {
    let path = Array(path)
    guard let first = path.first else { return nil }
    let rest = Array(path.dropFirst())
    switch first {
    case "Conversations": self.init(conversation: rest)
    case "Users": self.init(user: rest)
    case "ParticipantConversations" where rest.isEmpty: self = .participantConversations
    case "ConversationWithParticipants" where rest.isEmpty: self = .conversationWithParticipants
    case "Roles" where rest.isEmpty: self = .roles
    case "Roles" where rest.count == 1: self = .role(rest[0])
    case "Configuration" where rest.isEmpty: self = .configuration
    case "Configuration" where rest == ["Webhooks"]: self = .webhookConfiguration
    case "Services" where !inService && rest.isEmpty: self = .services
    case "Media" where inService && rest.isEmpty: self = .media
    case "Media" where inService && rest.count == 1: self = .mediaRecord(rest[0])
    case "Media" where inService && rest.count == 2 && rest[1] == "Content": self = .mediaContent(rest[0])
    case "MediaSet" where inService && rest.isEmpty: self = .mediaSet
    default: return nil
    }
  }

  private init?(conversation path: [String]) {
    if path.isEmpty {
      self = .conversations
      return
    }
    let words: Set<String> = ["Participants", "Messages", "Webhooks"]
    // A name cannot be empty, so the word is not the first part.
    guard let index = path.indices.dropFirst().first(where: { words.contains(path[$0]) }) else {
      self = .conversation(path.joined(separator: "/"))
      return
    }
    let name = path[..<index].joined(separator: "/")
    let rest = Array(path[(index + 1)...])
    switch (path[index], rest.count) {
    case ("Participants", 0): self = .participants(name)
    case ("Participants", _): self = .participant(name, rest.joined(separator: "/"))
    case ("Messages", 0): self = .messages(name)
    case ("Messages", 1): self = .message(name, rest[0])
    case ("Messages", 2) where rest[1] == "Receipts": self = .receipts(name, rest[0])
    case ("Messages", 3) where rest[1] == "Receipts": self = .receipt(name, rest[0], rest[2])
    case ("Webhooks", 0): self = .webhooks(name)
    case ("Webhooks", 1): self = .webhook(name, rest[0])
    default: return nil
    }
  }

  private init?(user path: [String]) {
    if path.isEmpty {
      self = .users
      return
    }
    guard let index = path.indices.dropFirst().first(where: { path[$0] == "Conversations" }) else {
      self = .user(path.joined(separator: "/"))
      return
    }
    let name = path[..<index].joined(separator: "/")
    let rest = path[(index + 1)...].joined(separator: "/")
    self = rest.isEmpty ? .userConversations(name) : .userConversation(name, rest)
  }

  /// The methods that the path takes.
  var methods: [String] {
    switch self {
    case .conversations, .participants, .messages, .webhooks, .users, .roles, .services, .configuration,
      .webhookConfiguration:
      ["GET", "POST"]
    case .conversation, .participant, .message, .webhook, .user, .role, .userConversation: ["GET", "POST", "DELETE"]
    case .service: ["GET", "DELETE"]
    case .receipts, .receipt, .userConversations, .participantConversations, .mediaRecord, .mediaContent: ["GET"]
    case .conversationWithParticipants, .media, .mediaSet: ["POST"]
    }
  }
}
