import type { Requirement } from '../requirement.ts'

/** Section 6: the API. */
export const methods = [
  {
    id: 'session-manager/6 session-manages-state',
    quote: 'The `Session` struct manages the in-memory state and file I/O.',
  },
  {
    id: 'session-manager/6 session-lock',
    quote: 'type Session struct {\nmu          sync.RWMutex',
    settled: 'DESIGN 1.4: no mutex; one loop, and a group commit that numbers and writes what callers append at once.',
  },
  {
    id: 'session-manager/6 session-id',
    quote: 'id          string',
  },
  {
    id: 'session-manager/6 session-file-path',
    quote: 'filePath    string',
    settled:
      '`session.path`: the folder of the session in its store, or the `.jsonl` file that was loaded; a memory store has none.',
  },
  {
    id: 'session-manager/6 session-entries',
    quote: 'entries     map[string]Entry // ID -> Entry lookup',
    settled: '`session.getEntry(id)`.',
  },
  {
    id: 'session-manager/6 session-leaf-id',
    quote: 'leafID      string           // Current tip of the tree',
    settled: 'DESIGN 1.3: `session.leafId` may be null.',
  },
  {
    id: 'session-manager/6 session-file-handle',
    quote: 'fileHandle  *os.File',
    settled: 'DESIGN 1.4: one descriptor is held open for appending.',
  },
  {
    id: 'session-manager/6 config-dir',
    quote: 'type Config struct {\nDir string // Directory to store sessions',
    settled: 'DESIGN 6: `openFileStore({ folder })`.',
  },
  {
    id: 'session-manager/6 manager-new',
    quote: 'type Manager interface {\nNew(cfg Config) (*Session, error)',
    settled: 'DESIGN 6: `SessionStore.create`.',
  },
  {
    id: 'session-manager/6 manager-load',
    quote: 'Load(path string) (*Session, error)',
    settled: 'DESIGN 6: `SessionStore.load`.',
  },
  {
    id: 'session-manager/6.1 new',
    quote: '// New initializes a new session.',
  },
  {
    id: 'session-manager/6.1 new-dir',
    quote: '// dir: Directory to store the session JSONL.',
    settled:
      'DESIGN 6: the folder belongs to the store; each session has a folder of its own below it, with the log in `events.jsonl`.',
  },
  {
    id: 'session-manager/6.1 new-parent-session-id',
    quote: '// parentSessionID: Optional ID of the session this one was branched from.',
  },
  {
    id: 'session-manager/6.1 new-signature',
    quote: 'func New(dir string, parentSessionID string) (*Session, error)',
    settled: 'DESIGN 6: `store.create({ parentSession })`.',
  },
  {
    id: 'session-manager/6.1 load',
    quote: '// Load opens an existing session file.',
  },
  {
    id: 'session-manager/6.1 load-path',
    quote: '// path: Absolute path to the .jsonl file.',
    settled: 'DESIGN 6: a session folder or any `.jsonl` path.',
  },
  {
    id: 'session-manager/6.1 load-signature',
    quote: 'func Load(path string) (*Session, error)',
    settled: 'DESIGN 6: `store.load(path)`.',
  },
  {
    id: 'session-manager/6.1 continue-recent',
    quote: '// ContinueRecent finds and loads the most recently modified session in a directory.',
    settled: 'DESIGN 1: "modified" is the time of the last message.',
  },
  {
    id: 'session-manager/6.1 continue-recent-dir',
    quote: '// dir: Directory to search for .jsonl files.',
    settled: 'DESIGN 6: the folder of the store.',
  },
  {
    id: 'session-manager/6.1 continue-recent-signature',
    quote: 'func ContinueRecent(dir string) (*Session, error)',
    settled: 'DESIGN 6: `store.continueRecent()`.',
  },
  {
    id: 'session-manager/6.1 fork-from',
    quote: "// ForkFrom creates a new session based on an existing file's history.",
  },
  {
    id: 'session-manager/6.1 fork-from-source-path',
    quote: '// sourcePath: Path to the source session file.',
    settled: 'DESIGN 6: an id of the store or a path.',
  },
  {
    id: 'session-manager/6.1 fork-from-target-dir',
    quote: '// targetDir: Where the new session file will be created.',
    settled: 'DESIGN 6: the store that forks is the target.',
  },
  {
    id: 'session-manager/6.1 fork-from-signature',
    quote: 'func ForkFrom(sourcePath string, targetDir string) (*Session, error)',
    settled: 'DESIGN 6: `store.forkFrom(source)`; entries keep their ids, records are not copied.',
  },
  {
    id: 'session-manager/6.1 append',
    quote: '// Append adds a generic entry as a child of the current leaf and advances the leaf pointer.',
    settled: 'DESIGN 1.2: notes (`label`, `session_info`) and records do not advance the leaf.',
  },
  {
    id: 'session-manager/6.1 append-entry',
    quote: '// entry: The fully populated Entry struct to append.',
    settled: "Seq, time, parent and, if it is left out, the id are the writer's.",
  },
  {
    id: 'session-manager/6.1 append-signature',
    quote: 'func (s *Session) Append(entry Entry) error',
    settled: '`session.append(draft)` gives the line as it was written.',
  },
  {
    id: 'session-manager/6.1 append-message',
    quote: '// AppendMessage appends a standard conversation message.',
  },
  {
    id: 'session-manager/6.1 append-message-role',
    quote: '// role: One of the Role constants (User, Assistant, Tool).',
  },
  {
    id: 'session-manager/6.1 append-message-content',
    quote: '// content: Slice of Content items (text, images, tool calls).',
  },
  {
    id: 'session-manager/6.1 append-message-signature',
    quote: 'func (s *Session) AppendMessage(role MessageRole, content []Content) (string, error)',
  },
  {
    id: 'session-manager/6.1 append-thinking-level-change',
    quote: "// AppendThinkingLevelChange records a change in the agent's internal thinking depth.",
  },
  {
    id: 'session-manager/6.1 append-thinking-level-change-level',
    quote: '// level: String identifier for the depth (e.g., "high", "low", "off").',
  },
  {
    id: 'session-manager/6.1 append-thinking-level-change-signature',
    quote: 'func (s *Session) AppendThinkingLevelChange(level string) (string, error)',
  },
  {
    id: 'session-manager/6.1 append-model-change',
    quote: '// AppendModelChange records a shift in the underlying LLM being used.',
  },
  {
    id: 'session-manager/6.1 append-model-change-provider',
    quote: '// provider: The AI provider name (e.g., "openai").',
  },
  {
    id: 'session-manager/6.1 append-model-change-model-id',
    quote: '// modelID: The specific model version (e.g., "gpt-4o").',
  },
  {
    id: 'session-manager/6.1 append-model-change-signature',
    quote: 'func (s *Session) AppendModelChange(provider, modelID string) (string, error)',
  },
  {
    id: 'session-manager/6.1 append-compaction',
    quote: '// AppendCompaction records a summary of truncated history.',
  },
  {
    id: 'session-manager/6.1 append-compaction-summary',
    quote: '// summary: The LLM-generated summarization text.',
  },
  {
    id: 'session-manager/6.1 append-compaction-first-kept-id',
    quote: '// firstKeptID: The ID of the earliest message preserved after this compaction.',
    settled: 'DESIGN 2: an id that is not in the current context is refused.',
  },
  {
    id: 'session-manager/6.1 append-compaction-tokens',
    quote: '// tokens: The token count of the context *before* this compaction occurred.',
  },
  {
    id: 'session-manager/6.1 append-compaction-signature',
    quote: 'func (s *Session) AppendCompaction(summary, firstKeptID string, tokens int) (string, error)',
  },
  {
    id: 'session-manager/6.1 append-session-info',
    quote: "// AppendSessionInfo updates metadata like the session's display name.",
  },
  {
    id: 'session-manager/6.1 append-session-info-name',
    quote: '// name: The human-readable name for the session.',
  },
  {
    id: 'session-manager/6.1 append-session-info-signature',
    quote: 'func (s *Session) AppendSessionInfo(name string) (string, error)',
  },
  {
    id: 'session-manager/6.1 append-custom-entry',
    quote: '// AppendCustomEntry persists arbitrary extension data.',
  },
  {
    id: 'session-manager/6.1 append-custom-entry-custom-type',
    quote: '// customType: Unique string key for the extension.',
  },
  {
    id: 'session-manager/6.1 append-custom-entry-data',
    quote: '// data: Map of data to persist.',
  },
  {
    id: 'session-manager/6.1 append-custom-entry-signature',
    quote: 'func (s *Session) AppendCustomEntry(customType string, data map[string]any) (string, error)',
  },
  {
    id: 'session-manager/6.1 set-label',
    quote: '// SetLabel associates a bookmark string with an entry.',
  },
  {
    id: 'session-manager/6.1 set-label-target-id',
    quote: '// targetID: ID of the entry to label.',
  },
  {
    id: 'session-manager/6.1 set-label-label',
    quote: '// label: The text of the label (pass empty string to clear).',
  },
  {
    id: 'session-manager/6.1 set-label-signature',
    quote: 'func (s *Session) SetLabel(targetID string, label string) (string, error)',
  },
  {
    id: 'session-manager/6.1 branch',
    quote: '// Branch moves the leaf pointer to an earlier entry.',
    settled: 'DESIGN 1.3: the move is a `leaf` record and survives a restart.',
  },
  {
    id: 'session-manager/6.1 branch-entry-id',
    quote: '// entryID: The ID of the entry to start branching from.',
    settled: 'DESIGN 1.3: null is before the first entry; a note is refused.',
  },
  {
    id: 'session-manager/6.1 branch-signature',
    quote: 'func (s *Session) Branch(entryID string) error',
  },
  {
    id: 'session-manager/6.1 branch-with-summary',
    quote: '// BranchWithSummary moves the leaf pointer and appends a summary of the abandoned path.',
    settled: 'DESIGN 1.2: one line, the `branch_summary` under its target, does both.',
  },
  {
    id: 'session-manager/6.1 branch-with-summary-from-id',
    quote: '// branchFromID: Entry ID to branch from.',
  },
  {
    id: 'session-manager/6.1 branch-with-summary-summary',
    quote: '// summary: LLM summary of the conversation path being abandoned.',
  },
  {
    id: 'session-manager/6.1 branch-with-summary-signature',
    quote: 'func (s *Session) BranchWithSummary(branchFromID string, summary string) (string, error)',
  },
  {
    id: 'session-manager/6.1 create-branched-session',
    quote: '// CreateBranchedSession exports a linear message path to a new file.',
    settled: 'DESIGN 6: the entries of the path with the same ids, the labels that point to them and their blobs.',
  },
  {
    id: 'session-manager/6.1 create-branched-session-leaf-id',
    quote: '// leafID: The end of the path to export.',
  },
  {
    id: 'session-manager/6.1 create-branched-session-signature',
    quote: 'func (s *Session) CreateBranchedSession(leafID string) (string, error)',
    settled: 'It gives the id of the new session.',
  },
  {
    id: 'session-manager/6.1 get-context',
    quote: '// GetContext builds the linear history from the current leaf back to root, resolving summaries.',
  },
  {
    id: 'session-manager/6.1 get-context-signature',
    quote: 'func (s *Session) GetContext() ([]Entry, error)',
    settled:
      'DESIGN 2: messages, each with the id of its entry, and the system prompt, model and thinking level in force.',
  },
  {
    id: 'session-manager/6.1 get-tree',
    quote: '// GetTree returns the full session as a hierarchical tree structure.',
  },
  {
    id: 'session-manager/6.1 get-tree-signature',
    quote: 'func (s *Session) GetTree() ([]TreeNode, error)',
  },
  {
    id: 'session-manager/6.1 list',
    quote: '// List return metadata for all session files in a directory.',
  },
  {
    id: 'session-manager/6.1 list-dir',
    quote: '// dir: Directory to scan for .jsonl files.',
    settled: 'DESIGN 6: the folder of the store.',
  },
  {
    id: 'session-manager/6.1 list-signature',
    quote: 'func List(dir string) ([]SessionInfo, error)',
    settled: 'DESIGN 6: `store.list()` gives a page of sessions, newest first.',
  },
  {
    id: 'session-manager/6.1 tree-node-entry',
    quote: 'type TreeNode struct {\nEntry    Entry',
  },
  {
    id: 'session-manager/6.1 tree-node-children',
    quote: 'Children []TreeNode',
  },
  {
    id: 'session-manager/6.1 tree-node-label',
    quote: 'Label    string',
  },
  {
    id: 'session-manager/6.1 session-info-id',
    quote: 'type SessionInfo struct {\nID           string',
  },
  {
    id: 'session-manager/6.1 session-info-path',
    quote: 'Path         string',
  },
  {
    id: 'session-manager/6.1 session-info-name',
    quote: 'Name         string',
  },
  {
    id: 'session-manager/6.1 session-info-created',
    quote: 'Created      time.Time',
  },
  {
    id: 'session-manager/6.1 session-info-modified',
    quote: 'Modified     time.Time',
    settled: 'DESIGN 1: the time of the last message.',
  },
  {
    id: 'session-manager/6.1 session-info-message-count',
    quote: 'MessageCount int',
  },
] as const satisfies Requirement[]
