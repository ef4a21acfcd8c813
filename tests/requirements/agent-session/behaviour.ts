import type { Requirement } from '../requirement.ts'

/** Sections 6 to 9: compaction, retries, resources, commands, extensions and what is kept. */
export const behaviour = [
  {
    id: 'agent-session/6.1 turn-end',
    quote: '`AgentSession` monitors `TurnEnd` events.',
    settled: 'DESIGN 7: the size is checked before each request, so after every turn that another one follows.',
  },
  {
    id: 'agent-session/6.1 threshold',
    quote: '**Threshold Trigger**: If `usage.TotalTokens > threshold`, trigger a background compaction.',
    settled: 'DESIGN 7: before the next request, in the run.',
  },
  {
    id: 'agent-session/6.1 overflow-error-removed',
    quote:
      '**Overflow Trigger**: If the provider returns a `ContextOverflow` error:\nRemove the error message from the current context.',
    settled: 'DESIGN 7: it never entered the path.',
  },
  { id: 'agent-session/6.1 overflow-compaction', quote: 'Trigger immediate compaction.' },
  { id: 'agent-session/6.1 overflow-retry', quote: 'Auto-retry the failed prompt.' },
  {
    id: 'agent-session/6.2 transient',
    quote: 'Transient errors (429, 500, 503, connectivity) trigger exponential backoff:',
    settled: 'DESIGN 3: only the adapter reads a status; it throws a `ModelError` of a kind.',
  },
  {
    id: 'agent-session/6.2 delay',
    quote: '**Delay**: `baseDelay * 2^attempt`.',
    settled: 'DESIGN 3: at most 60 s, at least what the provider asks for; jitter only lengthens.',
  },
  {
    id: 'agent-session/6.2 cleanup',
    quote: '**Cleanup**: Remove the error message from the context before retrying.',
    settled: 'DESIGN 7: it never entered the path; what failed is an `attempt` beside it.',
  },
  {
    id: 'agent-session/6.2 maximum',
    quote: '**Maximums**: Stop after `MaxRetries` and report final failure.',
  },
  {
    id: 'agent-session/6.3 skills',
    quote:
      'Before sending to the agent:\n**Skills**: `/skill:name` is replaced by the content of the corresponding `.md` file in the skills directory, wrapped in `<skill>` tags.',
    settled: 'The file is the SKILL.md of a folder of that name, without its front matter.',
  },
  {
    id: 'agent-session/6.3 templates',
    quote:
      '**Templates**: Slash commands matching prompt templates are expanded, inserting arguments into placeholders.',
  },
  { id: 'agent-session/7 wrapper', quote: '`AgentSession` provides an `ExecuteBash` wrapper:' },
  {
    id: 'agent-session/7 prefix',
    quote: '**Prefix Injection**: Prepends configured shell prefixes (e.g., for aliases).',
  },
  { id: 'agent-session/7 streaming', quote: '**Streaming Output**: Relays chunks to the UI in real-time.' },
  {
    id: 'agent-session/7 two-marks',
    quote:
      '**Context Management**: Handles the special `!!` prefix to exclude command output from the LLM context while still logging it to the session.',
    settled: '`shellWordsOf` reads what was typed; `executeBash` takes `excludeFromContext`.',
  },
  {
    id: 'agent-session/7 persistence',
    quote: '**Persistence**: Records the `bashExecution` event in the `SessionManager`.',
  },
  { id: 'agent-session/8 host', quote: '`AgentSession` serves as the primary host for extensions:' },
  {
    id: 'agent-session/8 commands',
    quote: '**Command Registration**: Extensions can register custom slash commands.',
  },
  {
    id: 'agent-session/8 hooks',
    quote:
      '**Turn Hooks**: `BeforeAgentStart`, `TurnStart`, `TurnEnd` allow extensions to modify prompts or system instructions.',
    settled: '`beforeAgentStart` changes the system prompt and adds messages; `turnStart` and `turnEnd` only tell.',
  },
  {
    id: 'agent-session/8 resources',
    quote: '**Resource Discovery**: Extensions can provide additional skills, prompts, or tools.',
  },
  {
    id: 'agent-session/9 as-they-occur',
    quote:
      '`AgentSession` is responsible for ensuring that all significant conversation events are persisted to the `SessionManager` as they occur.',
  },
  {
    id: 'agent-session/9 real-time',
    quote:
      '**Real-time Append**: Instead of saving the entire session at the end of a run, `AgentSession` appends entries to the JSONL log immediately when:',
  },
  {
    id: 'agent-session/9 message-end',
    quote: 'A `message_end` event is received (for User, Assistant, and Tool Result messages).',
    settled: 'DESIGN 7: that, plus the draft file while streaming.',
  },
  { id: 'agent-session/9 bash', quote: 'A bash command completes (`bashExecution`).' },
  { id: 'agent-session/9 compaction', quote: 'A compaction summary is generated (`compaction`).' },
  { id: 'agent-session/9 label', quote: 'A user manually bookmarks a node (`label`).' },
  {
    id: 'agent-session/9 crash',
    quote:
      '**Crash Resilience**: Because the underlying storage is append-only JSONL, the session remains consistent even if the process is terminated mid-turn.',
  },
  {
    id: 'agent-session/9 in-sync',
    quote: '**In-Memory Sync**: The `AgentSession` keeps its in-memory message history in sync with the persisted log.',
    settled: 'DESIGN 1: it has no history of its own; each request is made from the log.',
  },
  {
    id: 'agent-session/9 resumed',
    quote:
      'If a session is resumed, `AgentSession` calls `SessionManager.GetContext()` to rebuild the exact state (including thinking levels and models).',
  },
] as const satisfies Requirement[]
