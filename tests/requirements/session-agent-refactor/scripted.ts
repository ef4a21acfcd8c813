import type { Requirement } from '../requirement.ts'

/** Section 11: the scripted model and the golden sessions. */
export const scripted = [
  {
    id: 'session-agent-refactor/11 scripted-model',
    says: 'A deterministic model plays scripted events through the real interface.',
    lines: { ScriptedAgent: ['79ff4965'] },
    settled: 'With `scriptedModel` the model is scripted and the loop is real.',
  },
  { id: 'session-agent-refactor/11 no-api-calls', says: 'Tests need no API.', lines: { ScriptedAgent: ['2dcf45fa'] } },
  {
    id: 'session-agent-refactor/11 stream-event',
    says: 'Script events have one type.',
    lines: { ScriptedAgent: ['e5e35b7c', '40744a13'] },
    settled: '`ScriptEvent` is a union.',
  },
  {
    id: 'session-agent-refactor/11 scripted-agent',
    says: 'A scripted model follows its script.',
    lines: { ScriptedAgent: ['031a9b0a'] },
    settled: '`ScriptedModel` implements `Model`.',
  },
  {
    id: 'session-agent-refactor/11 script-builder',
    says: 'A fluent builder creates scripts.',
    lines: { ScriptedAgent: ['92e18317'] },
  },
  {
    id: 'session-agent-refactor/11 text-delta',
    says: 'Scripts can contain text deltas.',
    lines: { ScriptedAgent: ['c5ea5742', 'fc874597'] },
  },
  {
    id: 'session-agent-refactor/11 reasoning',
    says: 'Scripts can contain reasoning.',
    lines: { ScriptedAgent: ['67bc1540'] },
  },
  {
    id: 'session-agent-refactor/11 tool-lifecycle',
    says: 'Scripts can contain tool input, calls and results.',
    lines: { ScriptedAgent: ['cba5cf6d'] },
  },
  {
    id: 'session-agent-refactor/11 error',
    says: 'Scripts can contain provider errors.',
    lines: { ScriptedAgent: ['b00cb5be'] },
  },
  {
    id: 'session-agent-refactor/11 cancel',
    says: 'Scripts can cancel the run.',
    lines: { ScriptedAgent: ['9f0353ef'] },
    settled: 'The stream throws the reason of the signal.',
  },
  {
    id: 'session-agent-refactor/11 finish',
    says: 'Scripts can end a step with a finish reason.',
    lines: { ScriptedAgent: ['baa4dc77'] },
  },
  {
    id: 'session-agent-refactor/11 step-boundary',
    says: 'Scripts can have several steps.',
    lines: { ScriptedAgent: ['7d6b7519'] },
  },
  {
    id: 'session-agent-refactor/11 golden-cancel-mid-tool-call',
    says: 'Canceling during a tool call closes the call and sets the finish reason.',
    lines: { 'Golden Tests': ['52a4a798'] },
  },
  {
    id: 'session-agent-refactor/11 golden-tool-failure',
    says: 'Failed tool results are stored.',
    lines: { 'Golden Tests': ['4b1f6eca'] },
  },
  {
    id: 'session-agent-refactor/11 golden-provider-error',
    says: 'Provider errors are stored with reason and details.',
    lines: { 'Golden Tests': ['05bd8c33'] },
    settled: 'A failed request is an `attempt`; kind and message are in `error` and `run_end`.',
  },
  {
    id: 'session-agent-refactor/11 golden-normal-completion',
    says: 'A normal run streams text and stores its finish reason.',
    lines: { 'Golden Tests': ['b2c2f6a3'] },
  },
  {
    id: 'session-agent-refactor/11 golden-reasoning-then-response',
    says: 'Reasoning is stored before the response text.',
    lines: { 'Golden Tests': ['6809b717'] },
  },
  {
    id: 'session-agent-refactor/11 golden-multi-step-tool-use',
    says: 'Several tool steps store messages in the right order.',
    lines: { 'Golden Tests': ['035962ef'] },
  },
  {
    id: 'session-agent-refactor/11 golden-cancel-during-reasoning',
    says: 'Canceling during reasoning keeps the reasoning.',
    lines: { 'Golden Tests': ['404deb69'] },
  },
  {
    id: 'session-agent-refactor/11 build-a-script',
    says: 'A test builds a script that cancels during a tool call.',
    lines: { 'Usage Example': ['5a717c01', '3d4649e5', 'e92304fb', 'dd7b5fe3'] },
  },
  {
    id: 'session-agent-refactor/11 cancel-function',
    says: 'A test passes a cancel function to the script.',
    lines: { 'Usage Example': ['3577866e', '94e8dd8c', '49e78e82'] },
    settled: '`onCancel` of the options.',
  },
  {
    id: 'session-agent-refactor/11 run-is-cancelled',
    says: 'A test sees that the run was canceled.',
    lines: { 'Usage Example': ['14fc2891', 'e641b58c', '97c4366a'] },
    settled: 'The run ends with the outcome `aborted`.',
  },
  {
    id: 'session-agent-refactor/11 writes-survive-cancel',
    says: 'The last write of a canceled run succeeds.',
    lines: { 'Key Design Decision: Background Context for Error Recovery': ['c8027ddf'] },
  },
  {
    id: 'session-agent-refactor/11 writes-complete',
    says: 'Canceling does not cancel writes.',
    lines: { 'Key Design Decision: Background Context for Error Recovery': ['3ab751ae', '0a14d5b1', 'd7b2e9ce'] },
    settled: 'Writes that must survive an abort ignore the signal.',
  },
] as const satisfies readonly Requirement[]
