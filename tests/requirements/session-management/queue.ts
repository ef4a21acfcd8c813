import type { Requirement } from '../requirement.ts'

const logIsQueue = 'DESIGN 4: waiting messages are records of the log; `queue.json` is a copy of them.'

/** What waits, how it is kept, and how it goes out. */
export const queue = [
  {
    id: 'session-management/queue while-busy',
    quote:
      'Each session has an optional message queue that allows users to queue messages while the agent is processing.',
  },
  {
    id: 'session-management/queue delivered',
    quote:
      'Queued messages are automatically delivered when the agent becomes idle.\nWhen the agent finishes processing a prompt, the `BackgroundSession` automatically checks for queued messages and sends the next one:',
  },
  {
    id: 'session-management/queue fire-and-forget',
    quote:
      'The queue system enables a "fire-and-forget" workflow where users can queue multiple messages without waiting for each response.',
  },
  { id: 'session-management/queue follow-up', quote: 'Providing follow-up context while the agent is still working' },
  { id: 'session-management/queue tasks', quote: 'Queuing multiple tasks for sequential processing' },
  { id: 'session-management/queue automation', quote: 'Building automated workflows that submit work to the agent' },
  {
    id: 'session-management/queue one-session',
    quote: 'The `Queue` type manages the message queue for a single session.',
  },
  {
    id: 'session-management/queue fifo',
    quote:
      'It provides thread-safe FIFO operations with atomic file persistence.\n| `Queue` | Thread-safe queue manager for a session |',
  },
  {
    id: 'session-management/queue message-type',
    quote: '| `QueuedMessage` | A message waiting to be sent to the agent |',
  },
  {
    id: 'session-management/queue empty',
    quote: '| `ErrQueueEmpty` | Returned by `Pop()` when queue is empty |',
    settled: 'A `SessionError` with the code `queue-empty`.',
  },
  {
    id: 'session-management/queue not-found',
    quote: '| `ErrMessageNotFound` | Returned by `Get()` or `Remove()` when ID not found |',
    settled: 'A `SessionError` with the code `message-not-found`.',
  },
  {
    id: 'session-management/queue example-add',
    quote: 'queue := store.Queue(sessionID)\nmsg, err := queue.Add("What\'s the status?", nil, "client-123")',
  },
  {
    id: 'session-management/queue example-pop',
    quote: 'msg, err := queue.Pop()\nif errors.Is(err, session.ErrQueueEmpty) {\n// Send msg.Message to agent...',
  },
  {
    id: 'session-management/id format',
    quote: 'Message IDs use the format `q-{unix_timestamp}-{random_hex}`:\nq-1738396800-abc12345',
  },
  { id: 'session-management/id unique', quote: '**Uniqueness**: Timestamp + random hex ensures no collisions' },
  {
    id: 'session-management/id sortable',
    quote: '**Sortability**: IDs sort chronologically by queue time',
    settled: 'To the second, as its format says; within one, the order of the log counts.',
  },
  { id: 'session-management/id readable', quote: '**Debuggability**: Human-readable timestamp for troubleshooting' },
  {
    id: 'session-management/queue concurrent',
    quote:
      'The `Queue` type uses a mutex to ensure thread-safe operations:\nMultiple goroutines can safely call queue methods concurrently\nThe mutex is held only during the read-modify-write cycle',
    settled: 'Appends to one log are ordered by their writer; nobody waits for a lock.',
  },
  {
    id: 'session-management/queue atomic',
    quote:
      'File I/O is atomic (write to temp file → sync → rename)\n**Atomic writes**: Uses `fileutil.WriteJSONAtomic()` to prevent corruption during crashes',
    settled: logIsQueue,
  },
  {
    id: 'session-management/storage places',
    quote:
      'sessions/\n└── {session_id}/\n├── events.jsonl      # Event log\n├── metadata.json     # Session metadata\n└── queue.json        # Message queue',
  },
  {
    id: 'session-management/storage format',
    quote:
      '"messages": [\n"id": "q-1738396800-abc12345",\n"message": "What\'s the status?",\n"image_ids": [],\n"queued_at": "2026-02-01T12:00:00Z",\n"client_id": "a1b2c3d4"\n"updated_at": "2026-02-01T12:00:00Z"',
  },
  {
    id: 'session-management/storage separate',
    quote: '**Separate file**: Queue state is stored in `queue.json` rather than `events.jsonl` because:',
    settled: logIsQueue,
  },
  {
    id: 'session-management/storage transient',
    quote: 'Queue is transient (messages are removed when processed)',
    settled: logIsQueue,
  },
  {
    id: 'session-management/storage append-only',
    quote: 'Events are append-only (queue requires modification)\nEasier to clear queue without touching event history',
    settled: logIsQueue,
  },
  {
    id: 'session-management/storage no-limit',
    quote: '**No max size limit**: Queues are expected to be small; users manually add messages',
  },
  {
    id: 'session-management/rest list',
    quote:
      '| `GET` | `/api/sessions/{id}/queue` | List all queued messages |\n*GET /api/sessions/{id}/queue*\n// Response (200 OK)\n"messages": [...],\n"count": 3',
  },
  {
    id: 'session-management/rest add',
    quote:
      '| `POST` | `/api/sessions/{id}/queue` | Add a message to the queue |\n*POST /api/sessions/{id}/queue*\n{"message": "What\'s the status?", "image_ids": []}\n// Response (201 Created)\n"id": "q-1738396800-abc12345",\n"message": "What\'s the status?",\n"queued_at": "2026-02-01T12:00:00Z"',
  },
  {
    id: 'session-management/rest get',
    quote: '| `GET` | `/api/sessions/{id}/queue/{msg_id}` | Get a specific message |',
  },
  {
    id: 'session-management/rest delete',
    quote: '| `DELETE` | `/api/sessions/{id}/queue/{msg_id}` | Delete a specific message |',
  },
  { id: 'session-management/rest clear', quote: '| `DELETE` | `/api/sessions/{id}/queue` | Clear entire queue |' },
  {
    id: 'session-management/flow add',
    quote:
      'User->>API: POST /queue (message)\nAPI->>Queue: Add(message)\nQueue-->>API: QueuedMessage{id}\nAPI-->>User: 201 Created',
  },
  {
    id: 'session-management/flow added',
    quote: 'API->>BS: NotifyQueueUpdated()\nBS->>WS: queue_updated {action: "added"}',
  },
  {
    id: 'session-management/flow next',
    quote:
      'Note over Agent: Agent finishes current prompt\nBS->>BS: processNextQueuedMessage()\nBS->>Queue: Pop()\nQueue-->>BS: QueuedMessage',
    settled: 'DESIGN 4: the user message that delivers it also takes it out, in one line.',
  },
  { id: 'session-management/flow sending', quote: 'BS->>WS: queue_message_sending {id}' },
  { id: 'session-management/flow delay', quote: 'opt delay_seconds > 0\nBS->>BS: Sleep(delay)' },
  { id: 'session-management/flow removed', quote: 'BS->>WS: queue_updated {action: "removed"}' },
  { id: 'session-management/flow prompt', quote: 'BS->>Agent: Prompt(message)' },
  { id: 'session-management/flow sent', quote: 'BS->>WS: queue_message_sent {id}' },
  {
    id: 'session-management/config place',
    quote: 'Queue processing is configured in the `conversations` section of the config file:\nconversations:\nqueue:',
  },
  {
    id: 'session-management/config enabled',
    quote: 'enabled: true        # Enable/disable auto-processing (default: true)',
  },
  {
    id: 'session-management/config delay',
    quote: 'delay_seconds: 0     # Delay before sending next message (default: 0)',
  },
  {
    id: 'session-management/notice transport',
    quote:
      'The queue system sends real-time notifications to connected WebSocket clients via the `SessionObserver` interface:',
  },
  {
    id: 'session-management/notice updated',
    quote: '| `queue_updated` | Message added/removed/cleared | `{queue_length, action, message_id}` |',
  },
  {
    id: 'session-management/notice sending',
    quote: '| `queue_message_sending` | Queued message about to be sent | `{message_id}` |',
  },
  {
    id: 'session-management/notice sent',
    quote: '| `queue_message_sent` | Queued message was delivered | `{message_id}` |',
  },
  {
    id: 'session-management/store queue',
    quote:
      'The `session.Store` provides access to queues via the `Queue()` method:\nfunc (s *Store) Queue(sessionID string) *Queue',
  },
  {
    id: 'session-management/store instances',
    quote:
      "// The returned Queue is safe for concurrent use.\nThis method creates a new `Queue` instance pointing to the session's directory.\nMultiple calls return independent instances that share the same underlying file.",
  },
] as const satisfies readonly Requirement[]
