import type { Requirement } from '../requirement.ts'

/** Sessions: the store, the life of a session, and what callers at once may rely on. */
export const sessions = [
  {
    id: 'agent-module/sessions across-exchanges',
    quote: 'Sessions maintain conversation state across multiple exchanges.',
  },
  {
    id: 'agent-module/sessions limit',
    quote:
      'To prevent unbounded memory growth, sessions are limited to `MaxSessionMessages = 100` messages.\n**Message trimming**: Sessions limited to 100 messages to prevent unbounded memory growth in long-running sessions',
    settled: 'DESIGN 2: a window on what is shown; it never deletes.',
  },
  {
    id: 'agent-module/sessions trimmed',
    quote: 'When this limit is exceeded, older messages are automatically trimmed.',
    settled: 'DESIGN 2: the older ones are not shown, and are still there.',
  },
  {
    id: 'agent-module/session id',
    quote: 'class Session {\n+ID string',
  },
  {
    id: 'agent-module/session title',
    quote: '+Title string',
    settled: '`session.name`.',
  },
  {
    id: 'agent-module/session messages',
    quote: '+Messages []Message\nSession "1" --> "*" Message',
  },
  {
    id: 'agent-module/session created-at',
    quote: 'class Session {\n+CreatedAt time.Time',
  },
  {
    id: 'agent-module/session updated-at',
    quote: '+UpdatedAt time.Time',
    settled: 'DESIGN 1: the time of the last message.',
  },
  {
    id: 'agent-module/store sessions',
    quote: '-sessions map~string~*Session\nSessionStore "1" --> "*" Session',
  },
  {
    id: 'agent-module/store current',
    quote: 'class SessionStore {\n-current string',
    settled: 'DESIGN 6: the store has no current session; whoever works in one has, an `AgentSession`.',
  },
  {
    id: 'agent-module/store lock',
    quote: '-mu RWMutex\nAll SessionStore operations are protected by `sync.RWMutex`:',
    settled: 'DESIGN 1.4: no mutex; one loop, and a group commit that numbers what callers append at once.',
  },
  {
    id: 'agent-module/store new',
    quote: '+NewSessionStore() *SessionStore\n| `NewSessionStore` | `() *SessionStore` | Create empty store |',
    settled: '`memoryStore()`.',
  },
  {
    id: 'agent-module/store create',
    quote:
      '+Create(title) *Session\n| `Create()` | Write | Creates session and sets as current |\n| `Create` | `(title) *Session` | Create and set as current |',
    settled: '`store.create({ name })`; `agentSession.newSession()` also goes there.',
  },
  {
    id: 'agent-module/store get',
    quote:
      '+Get(id) (*Session, bool)\n| `Get()` | Read | Returns session reference |\n| `Get` | `(id) (*Session, bool)` | Get session by ID |',
    settled: '`store.open(id)` rejects where there is none.',
  },
  {
    id: 'agent-module/store current-session',
    quote:
      '+Current() *Session\nNoSession --> Active: Current() called\n| `Current()` | Read → Write | Read first, create if needed |\n| `Current` | `() *Session` | Get or create current session |',
    settled: '`AgentSession.open({ store })` makes one; with `sessionId` it opens that one.',
  },
  {
    id: 'agent-module/store set-current',
    quote:
      '+SetCurrent(id) bool\nActive --> Switched: SetCurrent(otherId)\nSwitched --> Active: Different session active\n| `SetCurrent` | `(id) bool` | Switch current session |',
    settled: '`agentSession.switchSession(id)`, which rejects where there is none.',
  },
  {
    id: 'agent-module/store list',
    quote: '+List() []*Session\n| `List` | `() []*Session` | Get all sessions |',
  },
  {
    id: 'agent-module/store delete',
    quote:
      '+Delete(id) bool\nActive --> Deleted: Delete() called\n| `Delete()` | Write | Removes from map |\n| `Delete` | `(id) bool` | Remove session |',
    settled: 'It lies in the trash and can be restored; one that is open is refused.',
  },
  {
    id: 'agent-module/store add-message',
    quote:
      '+AddMessage(sessionID, msg) bool\n| `AddMessage()` | Write | Appends to session |\n| `AddMessage` | `(sessionID, msg) bool` | Add message to session |',
    settled: '`session.appendMessage(role, content)`.',
  },
  {
    id: 'agent-module/store get-messages',
    quote:
      '+GetMessages(sessionID) []Message\n| `GetMessages()` | Read | Returns copy of messages |\n| `GetMessages` | `(sessionID) []Message` | Get session messages (copy) |',
    settled: '`session.getContext()`.',
  },
  {
    id: 'agent-module/store copy',
    quote: '**Copy on read**: `GetMessages()` returns a copy to prevent external mutation',
    settled:
      '`agent.history()` is a copy through and through; `session.getContext()` is a list of its own over messages that are only to be read.',
  },
  {
    id: 'agent-module/store clear-messages',
    quote:
      '+ClearMessages(sessionID) bool\n| `ClearMessages()` | Write | Empties message slice |\n| `ClearMessages` | `(sessionID) bool` | Clear session messages |',
    settled: '`session.branch(null)`: the conversation begins anew, and nothing is removed.',
  },
  {
    id: 'agent-module/store update-title',
    quote: '+UpdateTitle(sessionID, title) bool\n| `UpdateTitle` | `(sessionID, title) bool` | Update session title |',
    settled: '`session.appendSessionInfo(name)`.',
  },
  {
    id: 'agent-module/lifecycle starts-empty',
    quote: '[*] --> NoSession: App starts',
  },
  {
    id: 'agent-module/lifecycle auto-creates',
    quote: 'Note right of Active: Auto-creates "New Session"',
    settled: 'It has no name until its first prompt gives it one.',
  },
  {
    id: 'agent-module/lifecycle sends',
    quote: 'Active --> Active: Send() adds messages',
  },
  {
    id: 'agent-module/lifecycle results',
    quote: 'Active --> Active: Tool results added',
  },
  {
    id: 'agent-module/lifecycle sent-after-clear',
    quote: 'Cleared --> Active: New message sent',
  },
  {
    id: 'agent-module/lifecycle removed',
    quote: 'Deleted --> NoSession: Session removed',
  },
  {
    id: 'agent-module/sessions isolation',
    quote: '**Session isolation**: Each session maintains its own message history, enabling multiple conversations',
  },
  {
    id: 'agent-module/sessions in-memory',
    quote: '**In-memory storage**: Sessions are stored in memory for simplicity; persistence can be added later',
  },
] as const satisfies Requirement[]
