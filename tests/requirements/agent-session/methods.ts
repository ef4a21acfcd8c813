import type { Requirement } from '../requirement.ts'

/** Sections 4 and 5: options, events and methods. */
export const methods = [
  {
    id: 'agent-session/4.1 config',
    says: 'One options type has the dependencies and settings.',
    lines: { '4.1. Config & Options': ['e84b4ae7', '665b2582'] },
    settled: '`AgentSessionOptions`.',
  },
  {
    id: 'agent-session/4.1 config-agent',
    says: 'The options include the agent.',
    lines: { '4.1. Config & Options': ['aaabf255'] },
    settled: 'The loop is ours; callers pass models and tools.',
  },
  {
    id: 'agent-session/4.1 config-manager',
    says: 'The options include the storage.',
    lines: { '4.1. Config & Options': ['fe8d8849'] },
    settled: '`store`.',
  },
  {
    id: 'agent-session/4.1 config-model-registry',
    says: 'The options include a source of models and keys.',
    lines: { '4.1. Config & Options': ['e960cf4f'] },
    settled: '`models`, which a `ModelRegistry` can provide.',
  },
  {
    id: 'agent-session/4.1 config-resource-loader',
    says: 'The options include a loader for skills and templates.',
    lines: { '4.1. Config & Options': ['48ea8586'] },
    settled: '`expand`, built from the result of `loadResources`.',
  },
  {
    id: 'agent-session/4.1 config-cwd',
    says: 'The options include the working directory.',
    lines: { '4.1. Config & Options': ['47ef36e3'] },
  },
  {
    id: 'agent-session/4.1 prompt-options',
    says: 'Options control how a prompt is processed.',
    lines: { '4.1. Config & Options': ['77bbe378', 'be318d2a'] },
  },
  {
    id: 'agent-session/4.1 expand-templates',
    says: 'An option controls template expansion.',
    lines: { '4.1. Config & Options': ['d5d6f649'] },
    settled: 'Expansion is on by default.',
  },
  {
    id: 'agent-session/4.1 images',
    says: 'A prompt can include images.',
    lines: { '4.1. Config & Options': ['517539de'] },
  },
  {
    id: 'agent-session/4.1 streaming-behaviour',
    says: 'An option selects steering or queueing during a run.',
    lines: { '4.1. Config & Options': ['b45b3875', '2145cb74'] },
    settled: '`whenBusy: "queue" | "steer" | "reject"`.',
  },
  {
    id: 'agent-session/4.1 source',
    says: 'A prompt can state its source.',
    lines: { '4.1. Config & Options': ['d272881c'] },
  },
  {
    id: 'agent-session/4.1 steer',
    says: 'A prompt during a run can steer it.',
    lines: { '4.1. Config & Options': ['3b013974'] },
  },
  {
    id: 'agent-session/4.1 follow-up',
    says: 'A prompt during a run can become a follow-up.',
    lines: { '4.1. Config & Options': ['a473eaf2'] },
    settled: '`queue`.',
  },
  {
    id: 'agent-session/4.2 auto-compaction-start',
    says: 'An event announces the start of automatic compaction.',
    lines: { '4.2. Events': ['0ba771e6', 'cb037273'] },
  },
  {
    id: 'agent-session/4.2 auto-compaction-end',
    says: 'An event announces the end of automatic compaction.',
    lines: { '4.2. Events': ['93e5c7cd'] },
  },
  {
    id: 'agent-session/4.2 auto-retry-start',
    says: 'An event announces the start of a retry.',
    lines: { '4.2. Events': ['722e5ef4'] },
  },
  {
    id: 'agent-session/4.2 auto-retry-end',
    says: 'An event announces the end of the retries.',
    lines: { '4.2. Events': ['c130881a'] },
  },
  {
    id: 'agent-session/4.2 event-type',
    says: 'Each event has a type.',
    lines: { '4.2. Events': ['1e36f322', '6e2a43b4'] },
    settled: 'Events are one union with a `type` tag.',
  },
  {
    id: 'agent-session/4.2 event-timestamp',
    says: 'Each event has a time.',
    lines: { '4.2. Events': ['4ff5f4f8'] },
    settled: 'Log lines have timestamps; live events are sent when they happen.',
  },
  {
    id: 'agent-session/4.2 event-payload',
    says: 'Each event has data.',
    lines: { '4.2. Events': ['6a065817'] },
    settled: 'The members of each event are typed.',
  },
  {
    id: 'agent-session/5 prompt',
    says: '`prompt` sends a message to the agent.',
    lines: { '5. AgentSession API': ['15bb6f48', '87c1efea'] },
  },
  {
    id: 'agent-session/5 prompt-expands-and-queues',
    says: '`prompt` expands skills and templates and queues during a run.',
    lines: { '5. AgentSession API': ['24965403'] },
  },
  {
    id: 'agent-session/5 prompt-signature',
    says: '`prompt` takes text and options and can fail.',
    lines: { '5. AgentSession API': ['1f5049f1'] },
    settled: 'It returns whether the prompt was started, steered or queued.',
  },
  {
    id: 'agent-session/5 steer',
    says: '`steer` queues a message that interrupts.',
    lines: { '5. AgentSession API': ['47efb093', '38839784'] },
  },
  {
    id: 'agent-session/5 follow-up',
    says: '`followUp` queues a message for later.',
    lines: { '5. AgentSession API': ['36c7b285', '62c73cf3'] },
    settled: 'It is delivered after the current run.',
  },
  {
    id: 'agent-session/5 abort',
    says: '`abort` cancels the current run.',
    lines: { '5. AgentSession API': ['88a788db', '6671d560'] },
  },
  {
    id: 'agent-session/5 set-model',
    says: '`setModel` changes the model and checks its API key.',
    lines: { '5. AgentSession API': ['2cbe6aef', '014c85d8'] },
  },
  {
    id: 'agent-session/5 cycle-model',
    says: '`cycleModel` selects the next available model.',
    lines: { '5. AgentSession API': ['bc045cde'] },
    settled: 'It skips models that cannot be opened.',
  },
  {
    id: 'agent-session/5 cycle-model-signature',
    says: '`cycleModel` takes a direction and returns the model.',
    lines: { '5. AgentSession API': ['920c3407'] },
    settled: '`cycleModel("forward" | "backward")`.',
  },
  {
    id: 'agent-session/5 set-thinking-level',
    says: '`setThinkingLevel` changes the depth of reasoning.',
    lines: { '5. AgentSession API': ['7825354a', 'fa5a22b6'] },
  },
  {
    id: 'agent-session/5 compact',
    says: '`compact` summarizes the current branch on request.',
    lines: { '5. AgentSession API': ['5173921e'] },
  },
  {
    id: 'agent-session/5 compact-signature',
    says: '`compact` accepts instructions and returns its result.',
    lines: { '5. AgentSession API': ['45b38824'] },
  },
  {
    id: 'agent-session/5 new-session',
    says: '`newSession` starts an empty conversation.',
    lines: { '5. AgentSession API': ['e5c6ae9f', 'b6cce51a'] },
  },
  {
    id: 'agent-session/5 switch-session',
    says: '`switchSession` opens another session.',
    lines: { '5. AgentSession API': ['8403d868', '78c383c5'] },
  },
  {
    id: 'agent-session/5 fork',
    says: '`fork` branches from a given entry.',
    lines: { '5. AgentSession API': ['c0af4ca5', '931f09be'] },
  },
  {
    id: 'agent-session/5 state',
    says: '`state` returns the current state of the agent.',
    lines: { '5. AgentSession API': ['cb559a05', '1d109b18'] },
  },
  {
    id: 'agent-session/5 close',
    says: '`close` releases all resources.',
    lines: { '5. AgentSession API': ['9c573d6f', 'ac748038'] },
  },
] as const satisfies readonly Requirement[]
