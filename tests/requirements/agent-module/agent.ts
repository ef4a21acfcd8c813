import type { Requirement } from '../requirement.ts'

/** The agent: what it is made of, sending and cancelling. */
export const agent = [
  {
    id: 'agent-module/intro handles',
    quote:
      'It handles communication with language models, manages conversation sessions, executes tools, and streams responses.\n| Purpose | AI agent orchestration and conversation management |',
  },
  {
    id: 'agent-module/intro dependencies',
    quote: '| Dependencies | Fantasy (LLM), Tools registry, PubSub hub |',
    settled: 'DESIGN 6: a `Model`, a list of `Tool`s, and `subscribe`.',
  },
  {
    id: 'agent-module/agent contract',
    quote:
      'DefaultAgent -->|implements| Agent\nAgent <|.. DefaultAgent\nThe `Agent` interface defines the core contract for AI agent implementations.\nIts purpose is to provide a consistent API for sending messages, managing conversation history, and controlling execution.',
  },
  {
    id: 'agent-module/agent alternatives',
    quote:
      'The interface enables testing with mock implementations and allows future alternative agent implementations.\n**Interface-based design**: `Agent` interface allows for alternative implementations (testing, mocking)',
    settled:
      'DESIGN 6: any object with these methods is an agent; and the model can be scripted, so that the loop is real.',
  },
  {
    id: 'agent-module/agent send',
    quote:
      '+Send(ctx, prompt, opts, callbacks) error\n| `Send` | `(ctx, prompt, opts, callbacks) error` | Send message and stream response |\nThe `Send()` method orchestrates the complete request-response cycle:\nTUI->>Agent: Send(ctx, prompt, opts, callbacks)',
    settled: 'The options and the callbacks are one object; it resolves with how the run ended.',
  },
  {
    id: 'agent-module/agent set-system-prompt',
    quote:
      '+SetSystemPrompt(prompt)\n| `SetSystemPrompt` | `(prompt string)` | Update system prompt |\n-systemPrompt string',
  },
  {
    id: 'agent-module/agent set-tools',
    quote: '+SetTools(tools)\n| `SetTools` | `(tools []AgentTool)` | Update available tools |\n-tools []AgentTool',
  },
  {
    id: 'agent-module/agent history',
    quote: '+History(sessionID) []Message\n| `History` | `(sessionID) []Message` | Get conversation history |',
  },
  {
    id: 'agent-module/agent clear',
    quote: '+Clear(sessionID)\n| `Clear` | `(sessionID)` | Clear session history |\nActive --> Cleared: Clear() called',
    settled: 'DESIGN 1: nothing is removed; the conversation begins anew beside the old one.',
  },
  {
    id: 'agent-module/agent cancel',
    quote:
      '+Cancel(sessionID)\n| `Cancel` | `(sessionID)` | Cancel ongoing request |\n| `Cancel(sessionID)` | Cancels ongoing request for session |\nThe agent supports cancelling in-flight requests:',
  },
  {
    id: 'agent-module/agent is-busy',
    quote:
      '+IsBusy(sessionID) bool\n| `IsBusy` | `(sessionID) bool` | Check if request in progress |\n| `IsBusy(sessionID)` | Returns true if request in progress |',
  },
  {
    id: 'agent-module/agent new',
    quote:
      '+New(cfg Config) *DefaultAgent\n| `New` | `(cfg Config) *DefaultAgent` | Create new agent |\nDefaultAgent --> Config',
    settled: '`createAgent(config)`.',
  },
  {
    id: 'agent-module/agent set-model',
    quote:
      '+SetModel(model LanguageModel)\n| `SetModel` | `(model LanguageModel)` | Update model (for token refresh) |\n-model LanguageModel',
  },
  {
    id: 'agent-module/agent sessions',
    quote:
      '+Sessions() *SessionStore\n| `Sessions` | `() *SessionStore` | Get session store |\n-sessions *SessionStore\nDefaultAgent -->|uses| SessionStore\nSessionStore -->|stores| Sessions',
    settled: '`agent.sessions`.',
  },
  {
    id: 'agent-module/agent own-loop',
    quote: 'DefaultAgent -->|streams via| Fantasy\nFantasy -->|calls| Model\nFantasy -->|executes| Tools',
    settled: 'DESIGN 3: the loop is our own.',
  },
  {
    id: 'agent-module/agent consumers',
    quote: 'CMD -->|creates| DefaultAgent\nTUI -->|calls Send| DefaultAgent',
    settled: 'The command opens the session, and the screen calls `prompt` of its handle.',
  },
  {
    id: 'agent-module/config model',
    quote: '+Model LanguageModel',
  },
  {
    id: 'agent-module/config system-prompt',
    quote: '+SystemPrompt string',
  },
  {
    id: 'agent-module/config tools',
    quote: '+Tools []AgentTool',
  },
  {
    id: 'agent-module/config working-dir',
    quote: '+WorkingDir string\n-workingDir string',
  },
  {
    id: 'agent-module/config hub',
    quote: '+Hub *Hub\n-hub *Hub',
    settled: 'DESIGN 6: there is no hub: `subscribe`, and views on what it tells.',
  },
  {
    id: 'agent-module/state active-requests',
    quote:
      '-activeRequests map~string~CancelFunc\n| `setActiveRequest()` | Internal: stores cancel func |\n| `clearActiveRequest()` | Internal: removes cancel func |',
  },
  {
    id: 'agent-module/flow empty-prompt',
    quote: 'Note over Agent: Validate prompt not empty\n| `ErrEmptyPrompt` | Empty prompt provided |',
    settled: 'An error with code `empty-prompt`.',
  },
  {
    id: 'agent-module/flow busy',
    quote: 'Note over Agent: Check session not busy\n| `ErrSessionBusy` | Session already processing a request |',
    settled: 'DESIGN 4: `whenBusy: "reject"`, an error with code `session-busy`.',
  },
  {
    id: 'agent-module/flow cancellable',
    quote:
      'Agent->>Agent: Create cancellable context\nAgent->>Agent: Create child context with cancel\nAgent->>Agent: Store cancel func in activeRequests',
  },
  {
    id: 'agent-module/flow adds-user-message',
    quote: 'Agent->>Session: AddMessage(userMsg)',
  },
  {
    id: 'agent-module/flow model-and-tools',
    quote: 'Agent->>Fantasy: NewAgent(model, tools)',
  },
  {
    id: 'agent-module/flow streams',
    quote: 'Agent->>Fantasy: Stream(ctx, streamOpts)\nAgent->>Fantasy: Stream(childCtx, ...)',
  },
  {
    id: 'agent-module/flow text-delta',
    quote:
      'loop Streaming Response\nModel-->>Fantasy: Text delta\nFantasy-->>Agent: OnTextDelta(text)\nAgent-->>TUI: callbacks.OnTextDelta(text)',
  },
  {
    id: 'agent-module/flow tool-call',
    quote:
      'alt Tool Call Requested\nModel-->>Fantasy: Tool call\nFantasy-->>Agent: OnToolCall(tc)\nAgent-->>TUI: callbacks.OnToolCall(tc)',
  },
  {
    id: 'agent-module/flow executes-tool',
    quote: 'Fantasy->>Tool: Execute tool\nTool-->>Fantasy: Result',
  },
  {
    id: 'agent-module/flow adds-tool-result',
    quote: 'Fantasy-->>Agent: OnToolResult(tr)\nAgent->>Session: AddMessage(toolResultMsg)',
  },
  {
    id: 'agent-module/flow tells-result',
    quote: 'Agent-->>TUI: callbacks.OnToolResult(tr)',
  },
  {
    id: 'agent-module/flow adds-answer',
    quote: 'Agent->>Session: AddMessage(assistantMsg)',
    settled:
      'DESIGN 3: each model call is one message, appended when it is whole and before its calls are carried out.',
  },
  {
    id: 'agent-module/flow completes',
    quote: 'Agent-->>TUI: callbacks.OnComplete()',
  },
  {
    id: 'agent-module/cancel in-flight',
    quote:
      'TUI->>Agent: Send(ctx, prompt, ...)\nNote over Fantasy: Streaming in progress...\nTUI->>Agent: Cancel(sessionID)',
  },
  {
    id: 'agent-module/cancel looks-up',
    quote: 'Agent->>Agent: Lookup cancel func\nAgent->>Context: cancel()',
  },
  {
    id: 'agent-module/cancel stops-model',
    quote: 'Context-->>Fantasy: Context cancelled',
  },
  {
    id: 'agent-module/cancel returns',
    quote: 'Fantasy-->>Agent: Return with context error',
    settled: 'STYLE: aborting is not failing: `send` resolves with the outcome `aborted`.',
  },
  {
    id: 'agent-module/cancel clears',
    quote: 'Agent->>Agent: Clear from activeRequests',
  },
  {
    id: 'agent-module/cancel cleanup',
    quote: '**Context cancellation**: Proper cleanup of in-flight requests using context',
    settled: 'DESIGN 3: what was said stays, and every call has its result.',
  },
  {
    id: 'agent-module/options passed',
    quote:
      'When sending a message to the agent, you can pass options to control the request behavior.\nThe `SendOptions` struct configures how the `Send()` method processes your message.',
  },
  {
    id: 'agent-module/options session-id',
    quote:
      '+SessionID string\n| `SessionID` | `string` | Target session (uses current if empty) |\nSpecify a session ID to target a specific conversation.',
  },
  {
    id: 'agent-module/options current-session',
    quote: '**SessionID**: If empty, the agent automatically uses the current active session from the SessionStore.',
    settled: "Without an id it is the session of the agent's own; an `AgentSession` has a current one.",
  },
  {
    id: 'agent-module/options temperature',
    quote:
      '+Temperature *float64\n| `Temperature` | `*float64` | Optional sampling temperature for response randomness |\n**Temperature**: Controls response randomness.',
  },
  {
    id: 'agent-module/options temperature-values',
    quote:
      'Lower values (e.g., 0.0-0.3) produce more deterministic, focused responses.\nHigher values (e.g., 0.7-1.0) produce more creative, varied responses.',
    settled: 'Every value is passed on as it is, 0 as well; what it does is up to the model.',
  },
  {
    id: 'agent-module/options temperature-default',
    quote: "If nil, uses the model's default.",
  },
  {
    id: 'agent-module/options max-tokens',
    quote:
      '+MaxTokens int64\n| `MaxTokens` | `int64` | Maximum output tokens (default: 8192) |\n**MaxTokens**: Limits the maximum number of tokens in the response.',
  },
  {
    id: 'agent-module/options max-tokens-required',
    quote: 'The Anthropic API requires this parameter.',
  },
  {
    id: 'agent-module/options max-tokens-default',
    quote: 'Default is 8192 if not specified or set to zero.',
  },
  {
    id: 'agent-module/options example',
    quote:
      'opts := agent.SendOptions{\nSessionID:   "session-123",\nTemperature: ptr(0.7),\nMaxTokens:   4096,\nagent.Send(ctx, "Hello", opts, callbacks)',
  },
] as const satisfies Requirement[]
