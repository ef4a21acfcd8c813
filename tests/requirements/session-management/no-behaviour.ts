import type { Excuse } from '../requirement.ts'

const kind = 'The kind of a diagram.'
const group = 'The name of a group or of a part in a diagram.'
const box = 'A box of a diagram; what it owns is quoted from the table.'
const columns = 'The names of the columns.'
const go = 'A line of Go that only handles the one before it.'
const opening = 'It opens the list or the block that follows.'

/** What the document says without stating behaviour, and why it does not. */
export const noBehaviour: Excuse[] = [
  {
    text: 'This document covers session recording, playback, state management, and the message queue system.',
    reason: 'It says what the document is.',
  },
  { text: 'flowchart TB', reason: kind },
  { text: 'subgraph "Recording"', reason: group },
  { text: 'subgraph "Storage"', reason: group },
  { text: 'subgraph "Playback"', reason: group },
  { text: '| Event Type | Description |', reason: columns },
  { text: 'Session state is distributed across multiple components with clear ownership boundaries:', reason: opening },
  { text: 'graph TB', reason: kind },
  { text: 'subgraph "Persistence Layer"', reason: group },
  { text: 'STORE[session.Store<br/>Owns: Metadata, Events]', reason: box },
  { text: 'FS[(File System<br/>events.jsonl, metadata.json)]', reason: box },
  { text: 'subgraph "Runtime Layer"', reason: group },
  { text: 'BS[BackgroundSession<br/>Owns: ACP Connection, Observers, Prompt State]', reason: box },
  { text: 'SM[SessionManager<br/>Owns: Running Sessions Registry, Workspaces]', reason: box },
  { text: 'subgraph "Presentation Layer"', reason: group },
  { text: 'WSC[SessionWSClient<br/>Owns: WebSocket Connection, Permission Channel]', reason: box },
  { text: 'FE[Frontend<br/>Owns: UI State, Active Session]', reason: box },
  { text: '| Component | Owns | Does NOT Own |', reason: columns },
  { text: '// SessionObserver receives real-time updates from a BackgroundSession', reason: opening },
  { text: 'type SessionObserver interface {', reason: opening },
  { text: 'This is useful when:', reason: opening },
  { text: '| Type | Purpose |', reason: columns },
  { text: '| Error | Condition |', reason: columns },
  { text: '// Get queue for a session', reason: opening },
  { text: '// Add a message', reason: opening },
  { text: 'if err != nil {', reason: go },
  { text: 'return err', reason: go },
  { text: 'fmt.Printf("Queued message %s\\n", msg.ID)', reason: go },
  { text: '// Process next message when agent is idle', reason: opening },
  { text: '// Nothing to process', reason: go },
  { text: 'return nil', reason: go },
  { text: 'This format provides:', reason: opening },
  { text: '**File Location:**', reason: opening },
  { text: '**Queue File Format (`queue.json`):**', reason: opening },
  { text: '**Design Decisions:**', reason: opening },
  { text: '| Method | Path | Description |', reason: columns },
  { text: '**Request/Response Examples:**', reason: opening },
  { text: '// Request', reason: opening },
  { text: 'sequenceDiagram', reason: kind },
  { text: 'participant User', reason: group },
  { text: 'participant API as REST API', reason: group },
  { text: 'participant Queue as session.Queue', reason: group },
  { text: 'participant BS as BackgroundSession', reason: group },
  { text: 'participant WS as WebSocket Clients', reason: group },
  { text: 'participant Agent', reason: group },
  { text: '| Notification | When | Data |', reason: columns },
  { text: '// Queue returns a Queue instance for managing the message queue of a session.', reason: opening },
]
