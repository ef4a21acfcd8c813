import type { Requirement } from '../requirement.ts'

const frames =
  'PROTOCOL: it is told by the log line and the live text themselves, which every screen folds in the same way.'

/** What is recorded, who owns what, and who watches. */
export const recording = [
  {
    id: 'session-management/recording start',
    quote:
      'START[Session Start] --> REC[Recorder]\n**Creation**: `Recorder.Start()` creates session directory and files',
    settled: 'DESIGN 2: `store.create` does; there is no recorder beside the session.',
  },
  { id: 'session-management/recording prompt', quote: 'REC --> |RecordUserPrompt| STORE[Store]' },
  { id: 'session-management/recording message', quote: 'REC --> |RecordAgentMessage| STORE' },
  { id: 'session-management/recording tool-call', quote: 'REC --> |RecordToolCall| STORE' },
  { id: 'session-management/recording permission', quote: 'REC --> |RecordPermission| STORE' },
  {
    id: 'session-management/recording end',
    quote: 'END[Session End] --> REC\n**Completion**: `Recorder.End()` marks session as completed',
    settled: 'DESIGN 2: the record `session_end` does, and a session may go on after it.',
  },
  {
    id: 'session-management/recording events-file',
    quote:
      'STORE --> |AppendEvent| JSONL[events.jsonl]\n**Recording**: Events appended via `Recorder.Record*()` methods',
  },
  {
    id: 'session-management/recording metadata-file',
    quote: 'STORE --> |WriteMetadata| META[metadata.json]',
    settled: 'DESIGN 2: a copy, made from the log and made again where it is missing.',
  },
  {
    id: 'session-management/playback reads',
    quote: 'PLAYER[Player] --> |ReadEvents| JSONL\n**Playback**: `Player` loads events for review/replay',
  },
  {
    id: 'session-management/playback metadata',
    quote: 'PLAYER --> |GetMetadata| META',
    settled: 'The session that is played has it, folded from the log.',
  },
  { id: 'session-management/playback navigation', quote: 'PLAYER --> NAV[Navigation<br/>Next/Seek/Reset]' },
  { id: 'session-management/event session_start', quote: '| `session_start` | Session initialization with metadata |' },
  { id: 'session-management/event session_end', quote: '| `session_end` | Session termination with reason |' },
  { id: 'session-management/event user_prompt', quote: '| `user_prompt` | User input message |' },
  { id: 'session-management/event agent_message', quote: '| `agent_message` | Agent response text |' },
  { id: 'session-management/event agent_thought', quote: "| `agent_thought` | Agent's internal reasoning |" },
  { id: 'session-management/event tool_call', quote: '| `tool_call` | Tool invocation by agent |' },
  { id: 'session-management/event tool_call_update', quote: '| `tool_call_update` | Tool execution status update |' },
  { id: 'session-management/event plan', quote: "| `plan` | Agent's task plan |" },
  { id: 'session-management/event permission', quote: '| `permission` | Permission request and outcome |' },
  { id: 'session-management/event file_read', quote: '| `file_read` | File read operation |' },
  { id: 'session-management/event file_write', quote: '| `file_write` | File write operation |' },
  { id: 'session-management/event error', quote: '| `error` | Error occurrence |' },
  {
    id: 'session-management/owner store',
    quote:
      'STORE --> FS\n| `session.Store` | Persisted metadata, event log, file I/O | Runtime state, ACP connection |',
  },
  {
    id: 'session-management/owner background-session',
    quote:
      '| `BackgroundSession` | ACP process, observers, prompt state, message buffers | Persistence (delegates to Store), UI state |\nBS --> STORE\n**Persistence**: `BackgroundSession` delegates to `Recorder` which writes to `Store`',
    settled: 'DESIGN 4: `LiveSession`, and a driver that it knows by its interface.',
  },
  {
    id: 'session-management/owner session-manager',
    quote:
      'SM --> BS\n| `SessionManager` | Running session registry, workspace config, session limits | Individual session state, persistence |\n**Session Creation**: `SessionManager` creates `BackgroundSession`, which creates `session.Recorder` (wraps `Store`)',
    settled: 'DESIGN 4: `LiveSessions`.',
  },
  {
    id: 'session-management/owner ws-client',
    quote:
      'WSC -.->|observes| BS\n| `SessionWSClient` | WebSocket connection, permission response channel | Session lifecycle, persistence |',
  },
  {
    id: 'session-management/owner frontend',
    quote:
      'WSC --> FE\n| Frontend | UI state, active session selection, message display | Backend state, persistence |',
  },
  {
    id: 'session-management/flow observers',
    quote:
      '**Runtime Updates**: `BackgroundSession` notifies observers via `SessionObserver` interface\n`BackgroundSession` uses the observer pattern to decouple from WebSocket clients:',
    settled: 'DESIGN 4: observers pull; a notification is a wake-up.',
  },
  {
    id: 'session-management/flow screens',
    quote: '**UI Updates**: `SessionWSClient` (observer) forwards events to frontend via WebSocket',
  },
  {
    id: 'session-management/observer message',
    quote: 'OnAgentMessage(html string)',
    settled: 'DESIGN 4: Markdown travels; HTML is made only at the edge of the screen.',
  },
  { id: 'session-management/observer thought', quote: 'OnAgentThought(text string)', settled: frames },
  { id: 'session-management/observer tool-call', quote: 'OnToolCall(id, title, status string)', settled: frames },
  { id: 'session-management/observer tool-update', quote: 'OnToolUpdate(id string, status *string)', settled: frames },
  { id: 'session-management/observer plan', quote: 'OnPlan()', settled: frames },
  { id: 'session-management/observer file-write', quote: 'OnFileWrite(path string, size int)', settled: frames },
  { id: 'session-management/observer file-read', quote: 'OnFileRead(path string, size int)', settled: frames },
  {
    id: 'session-management/observer permission',
    quote:
      'OnPermission(ctx context.Context, params acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error)',
    settled: 'PROTOCOL: it is a record; the first answer of all screens counts.',
  },
  { id: 'session-management/observer complete', quote: 'OnPromptComplete(eventCount int)', settled: frames },
  { id: 'session-management/observer error', quote: 'OnError(message string)', settled: frames },
  { id: 'session-management/observer client-id', quote: 'GetClientID() string' },
  {
    id: 'session-management/observers tabs',
    quote:
      'Multiple `SessionWSClient` instances can observe the same `BackgroundSession`, enabling:\nMultiple browser tabs viewing the same session',
  },
  { id: 'session-management/observers none', quote: 'Session continues running when all clients disconnect' },
  { id: 'session-management/observers return', quote: 'Clients can reconnect and sync via incremental updates' },
] as const satisfies readonly Requirement[]
