import type { Requirement } from '../requirement.ts'

/** Sections 4 and 5: options, events and methods. */
export const methods = [
  {
    id: 'agent-session/4.1 config',
    quote:
      '// AgentSessionConfig defines the dependencies and settings for an AgentSession.\ntype AgentSessionConfig struct {',
    settled: '`AgentSessionOptions`.',
  },
  {
    id: 'agent-session/4.1 config-agent',
    quote: 'Agent          Agent          // Low-level agent interface',
    settled: 'DESIGN 6: the loop is ours; what is given are models and tools.',
  },
  {
    id: 'agent-session/4.1 config-manager',
    quote: 'Manager        Manager        // Session Manager for persistence',
    settled: 'DESIGN 6: `store`.',
  },
  {
    id: 'agent-session/4.1 config-model-registry',
    quote: 'ModelRegistry  ModelRegistry  // For model discovery and API keys',
    settled: '`models`, which a `ModelRegistry` serves.',
  },
  {
    id: 'agent-session/4.1 config-resource-loader',
    quote: 'ResourceLoader ResourceLoader // For skills and prompt templates',
    settled: '`expand`, over what `loadResources` found.',
  },
  { id: 'agent-session/4.1 config-cwd', quote: 'Cwd            string' },
  {
    id: 'agent-session/4.1 prompt-options',
    quote: '// PromptOptions controls how a prompt is processed.\ntype PromptOptions struct {',
  },
  {
    id: 'agent-session/4.1 expand-templates',
    quote: 'ExpandTemplates   bool',
    settled: 'It is on unless it is switched off.',
  },
  { id: 'agent-session/4.1 images', quote: 'Images            []ImageContent' },
  {
    id: 'agent-session/4.1 streaming-behaviour',
    quote: 'StreamingBehavior StreamingBehavior // "steer" or "followUp"\ntype StreamingBehavior string',
    settled: 'DESIGN 4: `whenBusy: "queue" | "steer" | "reject"`.',
  },
  { id: 'agent-session/4.1 source', quote: 'Source            string            // "interactive", "extension", etc.' },
  { id: 'agent-session/4.1 steer', quote: 'BehaviorSteer    StreamingBehavior = "steer"' },
  {
    id: 'agent-session/4.1 follow-up',
    quote: 'BehaviorFollowUp StreamingBehavior = "followUp"',
    settled: 'DESIGN 4: `queue`.',
  },
  {
    id: 'agent-session/4.2 auto-compaction-start',
    quote: 'type EventType string\nEventAutoCompactionStart EventType = "auto_compaction_start"',
  },
  {
    id: 'agent-session/4.2 auto-compaction-end',
    quote: 'EventAutoCompactionEnd   EventType = "auto_compaction_end"',
  },
  { id: 'agent-session/4.2 auto-retry-start', quote: 'EventAutoRetryStart      EventType = "auto_retry_start"' },
  { id: 'agent-session/4.2 auto-retry-end', quote: 'EventAutoRetryEnd        EventType = "auto_retry_end"' },
  {
    id: 'agent-session/4.2 event-type',
    quote: 'type SessionEvent struct {\nType      EventType',
    settled: 'DESIGN 6: one union with a `type` tag.',
  },
  {
    id: 'agent-session/4.2 event-timestamp',
    quote: 'Timestamp time.Time',
    settled: 'DESIGN 3: what counts is a line of the log and has its time; a live event is told when it happens.',
  },
  {
    id: 'agent-session/4.2 event-payload',
    quote: 'Payload   any // Detailed event data',
    settled: 'DESIGN 6: the members of each event are typed.',
  },
  {
    id: 'agent-session/5 prompt',
    quote: 'type AgentSession interface {\n// Prompt sends a message to the agent.',
  },
  {
    id: 'agent-session/5 prompt-expands-and-queues',
    quote: '// It handles skill/template expansion and manages streaming queues.',
  },
  {
    id: 'agent-session/5 prompt-signature',
    quote: 'Prompt(ctx context.Context, text string, opts PromptOptions) error',
    settled: 'It gives what became of the prompt: started, steered or queued.',
  },
  {
    id: 'agent-session/5 steer',
    quote: '// Steer queues an interrupt message.\nSteer(text string) error',
  },
  {
    id: 'agent-session/5 follow-up',
    quote: '// FollowUp queues a message for after the current turn.\nFollowUp(text string) error',
    settled: 'DESIGN 3: after the current run, as section 3.4 says.',
  },
  {
    id: 'agent-session/5 abort',
    quote: '// Abort cancels the current agent operation.\nAbort() error',
  },
  {
    id: 'agent-session/5 set-model',
    quote: '// SetModel switches the active model and validates API keys.\nSetModel(provider, modelID string) error',
  },
  {
    id: 'agent-session/5 cycle-model',
    quote: '// CycleModel moves to the next available model in the registry.',
    settled: 'Those that cannot be opened are passed over.',
  },
  {
    id: 'agent-session/5 cycle-model-signature',
    quote: 'CycleModel(direction string) (ModelInfo, error)',
    settled: '`cycleModel("forward" | "backward")` gives the model.',
  },
  {
    id: 'agent-session/5 set-thinking-level',
    quote: '// SetThinkingLevel updates the depth of internal reasoning.\nSetThinkingLevel(level string) error',
  },
  {
    id: 'agent-session/5 compact',
    quote: '// Compact manually triggers a summarization of the current branch.',
  },
  {
    id: 'agent-session/5 compact-signature',
    quote: 'Compact(customInstructions string) (CompactionResult, error)',
  },
  {
    id: 'agent-session/5 new-session',
    quote: '// NewSession starts a fresh conversation.\nNewSession(parentID string) error',
  },
  {
    id: 'agent-session/5 switch-session',
    quote: '// SwitchSession loads an existing session file.\nSwitchSession(sessionID string) error',
  },
  {
    id: 'agent-session/5 fork',
    quote: '// Fork branches the current conversation from a specific entry.\nFork(entryID string) error',
  },
  {
    id: 'agent-session/5 state',
    quote: '// State returns the current in-memory agent state.\nState() AgentState',
  },
  { id: 'agent-session/5 close', quote: '// Close cleans up resources.\nClose() error' },
] as const satisfies Requirement[]
