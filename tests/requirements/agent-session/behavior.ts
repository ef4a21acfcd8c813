import type { Requirement } from '../requirement.ts'

/** Sections 6 to 9: compaction, retries, resources, commands, extensions and persistence. */
export const behavior = [
  {
    id: 'agent-session/6.1 turn-end',
    says: 'The session checks the context size after each turn.',
    lines: { '6.1. Auto-Compaction': ['91edd751'] },
    settled: 'It checks before each request, and so after each turn that has a successor.',
  },
  {
    id: 'agent-session/6.1 threshold',
    says: 'Usage above the threshold triggers compaction.',
    lines: { '6.1. Auto-Compaction': ['05ab7447'] },
    settled:
      'The summary is begun in the background before the window is full, and appended before a later request; a run that reaches the end of its context waits for it.',
  },
  {
    id: 'agent-session/6.1 overflow-error-removed',
    says: 'An overflow error does not stay in the context.',
    lines: { '6.1. Auto-Compaction': ['f267be9f', '260493e0'] },
    settled: 'It never enters the path.',
  },
  {
    id: 'agent-session/6.1 overflow-compaction',
    says: 'An overflow error triggers compaction at once.',
    lines: { '6.1. Auto-Compaction': ['7d68425e'] },
  },
  {
    id: 'agent-session/6.1 overflow-retry',
    says: 'The session retries the prompt that overflowed.',
    lines: { '6.1. Auto-Compaction': ['209e0ff7'] },
  },
  {
    id: 'agent-session/6.2 transient',
    says: 'Status 429, 500, 503 and connection errors are retried with backoff.',
    lines: { '6.2. Auto-Retry': ['cc76e1cd'] },
    settled: 'Only the adapter reads a status; it throws a `ModelError` with a kind.',
  },
  {
    id: 'agent-session/6.2 delay',
    says: 'The delay doubles with each attempt.',
    lines: { '6.2. Auto-Retry': ['1f4973a4'] },
    settled: 'At most 60 s, at least what the provider requests; jitter only lengthens it.',
  },
  {
    id: 'agent-session/6.2 cleanup',
    says: 'A failed attempt does not stay in the context.',
    lines: { '6.2. Auto-Retry': ['df6c64ef'] },
    settled: 'It never enters the path; the log keeps an `attempt` record.',
  },
  {
    id: 'agent-session/6.2 maximum',
    says: 'The session stops after the maximum number of retries and reports the failure.',
    lines: { '6.2. Auto-Retry': ['2bb05e86'] },
  },
  {
    id: 'agent-session/6.3 skills',
    says: '`/skill:name` expands to the text of the skill in `<skill>` tags.',
    lines: { '6.3. Skill & Template Expansion': ['4ead6fe2', '598ffed9'] },
    settled: 'The text is the `SKILL.md` in the folder of that name, without front matter.',
  },
  {
    id: 'agent-session/6.3 templates',
    says: 'A slash command with the name of a template expands it with its arguments.',
    lines: { '6.3. Skill & Template Expansion': ['67362470'] },
  },
  {
    id: 'agent-session/7 wrapper',
    says: '`executeBash` runs a shell command.',
    lines: { '7. Bash Orchestration': ['cc00d2ef'] },
  },
  {
    id: 'agent-session/7 prefix',
    says: '`executeBash` prepends the configured shell prefix.',
    lines: { '7. Bash Orchestration': ['1f309c60'] },
  },
  {
    id: 'agent-session/7 streaming',
    says: '`executeBash` streams output to the screen.',
    lines: { '7. Bash Orchestration': ['5abadf67'] },
  },
  {
    id: 'agent-session/7 two-marks',
    says: '`!!` logs a command but hides its output from the model.',
    lines: { '7. Bash Orchestration': ['9ece3aae'] },
    settled: '`parseShellInput` parses the input; `executeBash` takes `excludeFromContext`.',
  },
  {
    id: 'agent-session/7 persistence',
    says: '`executeBash` records a `bashExecution` message.',
    lines: { '7. Bash Orchestration': ['b057f608'] },
  },
  {
    id: 'agent-session/8 host',
    says: '`AgentSession` hosts extensions.',
    lines: { '8. Extension Integration': ['15cbd12a'] },
  },
  {
    id: 'agent-session/8 commands',
    says: 'Extensions can register slash commands.',
    lines: { '8. Extension Integration': ['cebe0ebb'] },
  },
  {
    id: 'agent-session/8 hooks',
    says: 'Extensions can change prompts and system instructions through hooks.',
    lines: { '8. Extension Integration': ['f3a45923'] },
    settled:
      '`beforeAgentStart` changes the prompt and the system prompt, `turnStart` and `turnEnd` the system prompt for the next requests; the log has every change.',
  },
  {
    id: 'agent-session/8 resources',
    says: 'Extensions can provide skills, prompts and tools.',
    lines: { '8. Extension Integration': ['54ae5b7a'] },
  },
  {
    id: 'agent-session/9 as-they-occur',
    says: 'The session persists significant events when they happen.',
    lines: { '9. Persistence Strategy': ['8c81f6ce'] },
  },
  {
    id: 'agent-session/9 real-time',
    says: 'The session appends during the run, not at its end.',
    lines: { '9. Persistence Strategy': ['f679d397'] },
  },
  {
    id: 'agent-session/9 message-end',
    says: 'Each finished message is appended.',
    lines: { '9. Persistence Strategy': ['84c21e6e'] },
    settled: 'A draft file also keeps text while it streams.',
  },
  {
    id: 'agent-session/9 bash',
    says: 'Each finished bash command is appended.',
    lines: { '9. Persistence Strategy': ['40def365'] },
  },
  {
    id: 'agent-session/9 compaction',
    says: 'Each compaction summary is appended.',
    lines: { '9. Persistence Strategy': ['9733b5c6'] },
  },
  {
    id: 'agent-session/9 label',
    says: 'Each label set by a user is appended.',
    lines: { '9. Persistence Strategy': ['da8ab97a'] },
  },
  {
    id: 'agent-session/9 crash',
    says: 'A session stays consistent if its process dies during a turn.',
    lines: { '9. Persistence Strategy': ['87a000f6'] },
  },
  {
    id: 'agent-session/9 in-sync',
    says: 'The history in memory matches the log.',
    lines: { '9. Persistence Strategy': ['ece97de4'] },
    settled: 'There is no separate history; each request is built from the log.',
  },
  {
    id: 'agent-session/9 resumed',
    says: 'A resumed session restores its context, model and thinking level.',
    lines: { '9. Persistence Strategy': ['1675b9ec'] },
  },
] as const satisfies readonly Requirement[]
