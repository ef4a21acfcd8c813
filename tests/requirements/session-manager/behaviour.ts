import type { Requirement } from '../requirement.ts'

/** Sections 7 to 11: branching, compaction, special entries and the layer above. */
export const behaviour = [
  {
    id: 'session-manager/7.1 entries-form-a-tree',
    quote: 'The session is a collection of entries forming a tree.',
  },
  {
    id: 'session-manager/7.1 leaf-is-current',
    quote: 'The `leafID` tracks the "current" position.',
  },
  {
    id: 'session-manager/7.1 unique-id',
    quote: 'When a new message or event occurs:\nA new `Entry` is created with a unique `ID`.',
  },
  {
    id: 'session-manager/7.1 parent-is-leaf',
    quote: 'Its `ParentID` is set to the current `leafID`.',
  },
  {
    id: 'session-manager/7.1 appended-and-indexed',
    quote: 'The entry is appended to the JSONL file and added to the in-memory index.',
    settled: 'DESIGN 1.4: memory shows a line only when it is durable.',
  },
  {
    id: 'session-manager/7.1 leaf-advances',
    quote: "The `leafID` is updated to the new entry's `ID`.",
    settled: 'DESIGN 7: labels and session info do not advance the leaf; files where they did are read correctly.',
  },
  {
    id: 'session-manager/7.2 back-in-time',
    quote: 'Branching allows the user or agent to "go back in time."',
  },
  {
    id: 'session-manager/7.2 branch-moves-leaf',
    quote: '**`Branch(id)`**: Simply updates the internal `leafID`.',
    settled: 'DESIGN 1.3: it also writes a `leaf` record.',
  },
  {
    id: 'session-manager/7.2 next-append-is-child',
    quote: 'The next `Append` will create a child of the selected entry.',
  },
  {
    id: 'session-manager/7.2 branch-with-summary-use',
    quote: '**`BranchWithSummary(id, summary)`**: Used when moving away from a long-running branch.',
  },
  {
    id: 'session-manager/7.2 branch-with-summary-order',
    quote:
      'It appends a `BranchSummaryEntry` as a child of the `id`, and then sets the `leafID` to this summary entry.',
  },
  {
    id: 'session-manager/7.2 branch-with-summary-checkpoint',
    quote: 'This creates a "checkpoint" message in the new branch\'s history.',
  },
  {
    id: 'session-manager/8 compaction-reduces',
    quote: 'Compaction reduces the number of messages sent to the LLM by summarizing old history.',
  },
  {
    id: 'session-manager/8.1 summary',
    quote: 'A `CompactionEntry` contains:\n`Summary`: The LLM-generated summarization text.',
  },
  {
    id: 'session-manager/8.1 first-kept-entry-id',
    quote: '`FirstKeptEntryID`: The ID of the earliest message that remains in the context *after* the summary.',
  },
  {
    id: 'session-manager/8.1 tokens-before',
    quote: '`TokensBefore`: Total token count of the context *before* this compaction occurred.',
  },
  {
    id: 'session-manager/8.1 tokens-before-snapshot',
    quote:
      'This serves as a "snapshot" for observability (reporting how much history was summarized) and helps the system track context window usage over time.',
  },
  {
    id: 'session-manager/8.2 semantic-integrity',
    quote: 'The implementation must ensure that compaction never breaks the semantic integrity of the conversation.',
  },
  {
    id: 'session-manager/8.2 no-tool-splitting',
    quote:
      '**No Tool Splitting**: A `compaction` entry must never be placed between a tool call (Assistant message) and its corresponding `toolResult`.',
  },
  {
    id: 'session-manager/8.2 call-and-result-are-one',
    quote: 'These must always exist as a single unit in the history.',
  },
  {
    id: 'session-manager/8.2 cut-before-user',
    quote:
      '**Valid Cut Points**: Compaction should only occur at "stable" boundaries:\nBefore a `user` message (start of a turn).',
  },
  {
    id: 'session-manager/8.2 cut-before-answer',
    quote: 'Before an `assistant` message that does *not* contain tool calls.',
    settled: 'DESIGN 7: before an assistant message with calls only as a last resort; calls and results stay together.',
  },
  {
    id: 'session-manager/8.2 cut-before-other-entry',
    quote: 'Before other non-message events (like `model_change` or `thinking_level_change`).',
  },
  {
    id: 'session-manager/8.2 caller-chooses',
    quote:
      '**Responsibility**: While the `SessionManager` provides the storage mechanism (`AppendCompaction`), the **caller** (or a specialized compaction utility) is responsible for calculating the safe `first_kept_entry_id`.',
    settled: '`findCutPoints` and `chooseCutPoint` are that utility.',
  },
  {
    id: 'session-manager/8.2 identify-leaf',
    quote: 'To build the message list for an LLM request:\n**Identify Leaf**: Start at the current `leafID`.',
  },
  {
    id: 'session-manager/8.2 find-path',
    quote:
      '**Find Path**: Follow `parent_id` pointers up to the root (null `parent_id`) to identify the sequence of entries in the current branch.',
  },
  {
    id: 'session-manager/8.2 find-compaction',
    quote: '**Find Compaction**: Identify the most recent `CompactionEntry` in the path (if any).',
  },
  {
    id: 'session-manager/8.2 without-compaction',
    quote: '**Assemble Messages**:\nIf no compaction: Include all messages in the path.',
  },
  {
    id: 'session-manager/8.2 summary-first',
    quote: "If compaction exists:\nInclude the `CompactionEntry`'s `Summary` first.",
  },
  {
    id: 'session-manager/8.2 from-first-kept',
    quote: 'Start including standard messages *only after* reaching the entry matching `FirstKeptEntryID`.',
    settled:
      'DESIGN 2: if the kept entry is not on the path, the context is the summary and everything after it, and the damage is reported.',
  },
  {
    id: 'session-manager/8.2 up-to-leaf',
    quote: 'Include all messages from `FirstKeptEntryID` up to the current leaf.',
  },
  {
    id: 'session-manager/8.2 inject-system-info',
    quote:
      '**Inject System Info**: `ThinkingLevel` and `Model` changes are tracked during the walk to set the current session state.',
    settled: 'DESIGN 2: those last set on the whole path, before the cut too.',
  },
  {
    id: 'session-manager/9 label-not-in-context',
    quote: '**LabelEntry**: These are "meta" entries that don\'t appear in the LLM context.',
  },
  {
    id: 'session-manager/9 label-target',
    quote: 'They associate a string (label) with a target entry ID via the `SetLabel` method.',
  },
  {
    id: 'session-manager/9 label-bookmarking',
    quote:
      '**Use Case: Bookmarking**: Users or agents can "bookmark" significant points in a conversation (e.g., "Requirement defined", "Bug reproduced") for easy retrieval.',
  },
  {
    id: 'session-manager/9 label-navigation',
    quote:
      '**Use Case: Navigation**: UI components use labels to provide a "Table of Contents" for long sessions, allowing users to jump back to specific nodes in the tree.',
  },
  {
    id: 'session-manager/9 label-automation',
    quote:
      '**Use Case: Automation**: Extensions can label entries that need special periodic processing (e.g., "needs_review").',
  },
  {
    id: 'session-manager/9 latest-label',
    quote: '**State Management**: The `SessionManager` maintains a map of the *latest* label for any given entry.',
  },
  {
    id: 'session-manager/9 empty-label-removes',
    quote: 'Setting a label to an empty string effectively removes the bookmark.',
  },
  {
    id: 'session-manager/9 session-info',
    quote: "**SessionInfoEntry**: Used for metadata like the session's display name.",
  },
  {
    id: 'session-manager/9 custom-entry',
    quote:
      '**CustomEntry**: Allows extensions to store arbitrary JSON data that persists in the session log but is ignored by the LLM context builder.',
  },
  {
    id: 'session-manager/11 passive',
    quote: 'The `SessionManager` is a "passive" data layer focused on persistence and tree reconstruction.',
  },
  {
    id: 'session-manager/11 active-layer-outside',
    quote: 'An "active" orchestration layer (e.g., `AgentSession`) is required to drive the agent\'s lifecycle.',
    settled: 'The orchestration is `AgentSession` of the agent package; a session never acts by itself.',
  },
  {
    id: 'session-manager/11.1 event-handling',
    quote:
      '**Event Handling**: Subscribes to agent events (e.g., `message_end`) and calls `SessionManager.Append` to persist history in real-time.',
    settled:
      'The agent package listens; here an append is durable when it resolves, and a reader elsewhere sees it at once.',
  },
  {
    id: 'session-manager/11.1 context-management',
    quote: '**Context Management**: Calls `GetContext` before each LLM request to build the linear history.',
    settled: 'The agent package calls it; here the context is that of the leaf at that moment.',
  },
  {
    id: 'session-manager/11.1 token-usage',
    quote: '**Automatic Compaction**:\nTracks token usage after each assistant response.',
    settled: 'The agent package tracks; here each answer keeps its usage.',
  },
  {
    id: 'session-manager/11.1 when-to-compact',
    quote: 'Decides when to trigger compaction based on the model\'s context window and a "reserve" threshold.',
    settled: 'DESIGN 3: the agent package decides; here the count it had then is kept.',
  },
  {
    id: 'session-manager/11.1 safe-cut-points',
    quote: 'Uses a compaction utility to find safe cut points and generates the summary.',
    settled: '`chooseCutPoint` is the utility.',
  },
  {
    id: 'session-manager/11.1 leaf-during-switches',
    quote: '**Branching Decisions**:\nManages the `leafID` state during manual switches or automatic retries.',
    settled: 'DESIGN 1.3: the leaf is in the log; `branch` answers `session-busy` while a run is open.',
  },
  {
    id: 'session-manager/11.1 when-to-summarise',
    quote: 'Determines when to use `BranchWithSummary` to preserve context from abandoned paths.',
    settled: 'The agent package determines; here the summary keeps the abandoned leaf.',
  },
  {
    id: 'session-manager/11.1 persistence-configuration',
    quote: '**Persistence Configuration**: Manages session file paths and ensures they are initialized correctly.',
    settled: 'The file store makes folders and files itself, private to their user.',
  },
  {
    id: 'session-manager/11.2 llm-agent',
    quote: '| **LLM Agent** | Intelligence | Reasoning & Tool Calls |',
    settled: 'The model is outside of the session: what it said and called is stored as it came.',
  },
  {
    id: 'session-manager/11.2 agent-session',
    quote: '| **AgentSession** | Orchestration | Decision making (When to compact? When to branch?) |',
    settled: 'It decides; the session refuses only what would damage the log.',
  },
  {
    id: 'session-manager/11.2 session-manager',
    quote: '| **SessionManager** | Data Layer | Persistence, Tree Traversal, Path Reconstruction |',
    settled: 'DESIGN 6: `SessionStore` and `Session`.',
  },
  {
    id: 'session-manager/11.2 compaction-utils',
    quote: '| **Compaction Utils** | Domain Logic | Token estimation, safety rule enforcement (valid cut points) |',
    settled: "`chooseCutPoint` takes the caller's own estimate, `sizeOf`.",
  },
] as const satisfies Requirement[]
