import type { Requirement } from '../requirement.ts'

/** Sections 7 to 11: branching, compaction, special entries and the layer above. */
export const behavior = [
  {
    id: 'session-manager/7.1 entries-form-a-tree',
    says: 'The entries of a session form a tree.',
    lines: { '7.1. Appending': ['82c81a25'] },
  },
  {
    id: 'session-manager/7.1 leaf-is-current',
    says: 'The leaf is the current position.',
    lines: { '7.1. Appending': ['486eb70d'] },
  },
  {
    id: 'session-manager/7.1 unique-id',
    says: 'A new entry has a unique id.',
    lines: { '7.1. Appending': ['f68d242d', 'f1f15d0b'] },
  },
  {
    id: 'session-manager/7.1 parent-is-leaf',
    says: 'The parent of a new entry is the leaf.',
    lines: { '7.1. Appending': ['3097e584'] },
  },
  {
    id: 'session-manager/7.1 appended-and-indexed',
    says: 'A new entry is in the file and in memory.',
    lines: { '7.1. Appending': ['38d2285a'] },
    settled: 'Memory shows a line only when it is durable.',
  },
  {
    id: 'session-manager/7.1 leaf-advances',
    says: 'A new entry becomes the leaf.',
    lines: { '7.1. Appending': ['0ad40d32'] },
    settled: 'Labels and session information do not move the leaf; files in which they did are read correctly.',
  },
  {
    id: 'session-manager/7.2 back-in-time',
    says: 'A user or agent can return to an earlier point.',
    lines: { '7.2. Branching': ['97bb0008'] },
  },
  {
    id: 'session-manager/7.2 branch-moves-leaf',
    says: '`branch` only moves the leaf.',
    lines: { '7.2. Branching': ['c703b694'] },
    settled: 'It also writes a `leaf` record.',
  },
  {
    id: 'session-manager/7.2 next-append-is-child',
    says: 'The selected entry is the parent of the next one.',
    lines: { '7.2. Branching': ['76ebe535'] },
  },
  {
    id: 'session-manager/7.2 branch-with-summary-use',
    says: '`branchWithSummary` serves to leave a long branch.',
    lines: { '7.2. Branching': ['a37b8ef8'] },
  },
  {
    id: 'session-manager/7.2 branch-with-summary-order',
    says: 'The summary is a child of the target and becomes the leaf.',
    lines: { '7.2. Branching': ['d6d0a92d'] },
  },
  {
    id: 'session-manager/7.2 branch-with-summary-checkpoint',
    says: 'The summary is a message in the new branch.',
    lines: { '7.2. Branching': ['0615f572'] },
  },
  {
    id: 'session-manager/8 compaction-reduces',
    says: 'Compaction shortens the context by summarizing old messages.',
    lines: { '8. Compaction & Traversal Logic': ['c8597822'] },
  },
  {
    id: 'session-manager/8.1 summary',
    says: 'A compaction has a summary by the model.',
    lines: { '8.1. Compaction Entry': ['e58aa1da', '17a58097'] },
  },
  {
    id: 'session-manager/8.1 first-kept-entry-id',
    says: 'A compaction names the first message that stays.',
    lines: { '8.1. Compaction Entry': ['038865a0'] },
  },
  {
    id: 'session-manager/8.1 tokens-before',
    says: 'A compaction has the size of the context before it.',
    lines: { '8.1. Compaction Entry': ['c63b8b44'] },
  },
  {
    id: 'session-manager/8.1 tokens-before-snapshot',
    says: 'The token count shows how much was summarized.',
    lines: { '8.1. Compaction Entry': ['af2b3c79'] },
  },
  {
    id: 'session-manager/8.2 semantic-integrity',
    says: 'Compaction keeps the conversation meaningful.',
    lines: { '8.2. Compaction Safety Rules': ['2b0d6021'] },
  },
  {
    id: 'session-manager/8.2 no-tool-splitting',
    says: 'Compaction never separates a tool call from its result.',
    lines: { '8.2. Compaction Safety Rules': ['836875e8'] },
  },
  {
    id: 'session-manager/8.2 call-and-result-are-one',
    says: 'A tool call and its result stay together.',
    lines: { '8.2. Compaction Safety Rules': ['ec8b3a60'] },
  },
  {
    id: 'session-manager/8.2 cut-before-user',
    says: 'A cut before a user message is valid.',
    lines: { '8.2. Compaction Safety Rules': ['481e8786', 'bda1cf61'] },
  },
  {
    id: 'session-manager/8.2 cut-before-answer',
    says: 'A cut before an assistant message without tool calls is valid.',
    lines: { '8.2. Compaction Safety Rules': ['62900891'] },
    settled: 'A cut before one with tool calls is a last resort; calls and results stay together.',
  },
  {
    id: 'session-manager/8.2 cut-before-other-entry',
    says: 'A cut before an entry that is not a message is valid.',
    lines: { '8.2. Compaction Safety Rules': ['f0b000c9'] },
  },
  {
    id: 'session-manager/8.2 caller-chooses',
    says: 'The caller chooses a safe first kept entry.',
    lines: { '8.2. Compaction Safety Rules': ['47c74d46'] },
    settled: '`findCutPoints` and `chooseCutPoint` help with this.',
  },
  {
    id: 'session-manager/8.2 identify-leaf',
    says: 'The context starts from the leaf.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['2099a793', '95eef23d'] },
  },
  {
    id: 'session-manager/8.2 find-path',
    says: 'The context follows the parents up to the root.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['0437be23'] },
  },
  {
    id: 'session-manager/8.2 find-compaction',
    says: 'The context uses the newest compaction on the path.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['6dd89e45'] },
  },
  {
    id: 'session-manager/8.2 without-compaction',
    says: 'Without a compaction, the context has all messages of the path.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['71653477', '1a2416ba'] },
  },
  {
    id: 'session-manager/8.2 summary-first',
    says: 'With a compaction, the summary comes first.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['780d7b1d', '11245bf7'] },
  },
  {
    id: 'session-manager/8.2 from-first-kept',
    says: 'Messages before the first kept entry are omitted.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['21449abd'] },
    settled:
      'If the kept entry is not on the path, the context is the summary and all later entries, and the damage is reported.',
  },
  {
    id: 'session-manager/8.2 up-to-leaf',
    says: 'Messages from the first kept entry to the leaf are included.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['3dc403a3'] },
  },
  {
    id: 'session-manager/8.2 inject-system-info',
    says: 'The context has the model and thinking level in force.',
    lines: { '8.2. Traversal Algorithm (`GetContext`)': ['61e2a08f'] },
    settled: 'The last values on the whole path count, including those before the cut.',
  },
  {
    id: 'session-manager/9 label-not-in-context',
    says: 'The model does not see labels.',
    lines: { '9. Special Entry Handling': ['6533d9f9'] },
  },
  {
    id: 'session-manager/9 label-target',
    says: '`setLabel` connects a text with an entry.',
    lines: { '9. Special Entry Handling': ['aca4de1a'] },
  },
  {
    id: 'session-manager/9 label-bookmarking',
    says: 'Users and agents can bookmark entries.',
    lines: { '9. Special Entry Handling': ['3f65c7d2'] },
  },
  {
    id: 'session-manager/9 label-navigation',
    says: 'A screen can use labels to jump to entries.',
    lines: { '9. Special Entry Handling': ['42647c9f'] },
  },
  {
    id: 'session-manager/9 label-automation',
    says: 'A program finds all entries with a label and clears it when done.',
    lines: { '9. Special Entry Handling': ['bc0b5a34'] },
  },
  {
    id: 'session-manager/9 label-by-extension',
    says: 'Extensions can label entries.',
    lines: { '9. Special Entry Handling': ['bc0b5a34'] },
  },
  {
    id: 'session-manager/9 latest-label',
    says: 'The latest label of an entry counts.',
    lines: { '9. Special Entry Handling': ['955d9fcd'] },
  },
  {
    id: 'session-manager/9 empty-label-removes',
    says: 'An empty label removes the bookmark.',
    lines: { '9. Special Entry Handling': ['11e15310'] },
  },
  {
    id: 'session-manager/9 session-info',
    says: 'Session information stores the name of the session.',
    lines: { '9. Special Entry Handling': ['f795dfa6'] },
  },
  {
    id: 'session-manager/9 custom-entry',
    says: 'The log keeps extension data, and the model does not see it.',
    lines: { '9. Special Entry Handling': ['edff1a3f'] },
  },
  {
    id: 'session-manager/11 passive',
    says: 'The session layer only stores data and rebuilds paths.',
    lines: { '11. Orchestration Layer (AgentSession)': ['b85e8901'] },
  },
  {
    id: 'session-manager/11 active-layer-outside',
    says: 'Another layer drives the agent.',
    lines: { '11. Orchestration Layer (AgentSession)': ['c3f4d74a'] },
    settled: '`AgentSession` of the agent package does; a session never acts on its own.',
  },
  {
    id: 'session-manager/11.1 event-handling',
    says: 'The agent layer stores events as they happen.',
    lines: { '11.1. Responsibilities': ['0ef5dd91'] },
    settled: 'The agent package listens; an append is durable when it resolves, and other readers see it at once.',
  },
  {
    id: 'session-manager/11.1 context-management',
    says: 'The agent layer builds the context before each request.',
    lines: { '11.1. Responsibilities': ['9ea30e2f'] },
    settled: 'The agent package calls `getContext`, which uses the current leaf.',
  },
  {
    id: 'session-manager/11.1 token-usage',
    says: 'The agent layer tracks token usage after each response.',
    lines: { '11.1. Responsibilities': ['7eedcbbb', '2106d983'] },
    settled: 'The agent package tracks it; each stored response has its usage.',
  },
  {
    id: 'session-manager/11.1 when-to-compact',
    says: 'The agent layer decides when to compact.',
    lines: { '11.1. Responsibilities': ['ded16a5d'] },
    settled: 'The agent package decides; the log keeps the token count.',
  },
  {
    id: 'session-manager/11.1 safe-cut-points',
    says: 'The agent layer finds safe cut points and creates the summary.',
    lines: { '11.1. Responsibilities': ['d315ccaa'] },
    settled: '`chooseCutPoint` finds them.',
  },
  {
    id: 'session-manager/11.1 leaf-during-switches',
    says: 'The agent layer manages the leaf during switches and retries.',
    lines: { '11.1. Responsibilities': ['dbf8ffe4', '9db9d77b'] },
    settled: 'The log has the leaf; `branch` fails with `session-busy` during a run.',
  },
  {
    id: 'session-manager/11.1 when-to-summarise',
    says: 'The agent layer decides when to summarize an abandoned path.',
    lines: { '11.1. Responsibilities': ['550c237c'] },
    settled: 'The agent package decides; the summary names the abandoned leaf.',
  },
  {
    id: 'session-manager/11.1 persistence-configuration',
    says: 'The paths of session files are managed and initialized.',
    lines: { '11.1. Responsibilities': ['23367840'] },
    settled: 'The file store creates private folders and files itself.',
  },
  {
    id: 'session-manager/11.2 llm-agent',
    says: 'The model reasons and calls tools.',
    lines: { '11.2. Relationship': ['e689055c'] },
    settled: 'The model is outside of the session; its output is stored unchanged.',
  },
  {
    id: 'session-manager/11.2 agent-session',
    says: 'The agent session decides when to compact and branch.',
    lines: { '11.2. Relationship': ['4e02632e'] },
    settled: 'The session refuses only what would damage the log.',
  },
  {
    id: 'session-manager/11.2 session-manager',
    says: 'The session layer persists and traverses the tree.',
    lines: { '11.2. Relationship': ['ed196389'] },
    settled: '`SessionStore` and `Session`.',
  },
  {
    id: 'session-manager/11.2 compaction-utils',
    says: 'Compaction helpers estimate tokens and enforce safe cuts.',
    lines: { '11.2. Relationship': ['b69157e3'] },
    settled: '`chooseCutPoint` takes the estimate of the caller, `sizeOf`.',
  },
] as const satisfies readonly Requirement[]
