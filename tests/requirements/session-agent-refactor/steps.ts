import type { Requirement } from '../requirement.ts'

/** Sections 5 to 8: one step of a run in detail, and what was decided. */
export const steps = [
  {
    id: 'session-agent-refactor/5.1 handler',
    quote:
      '// StepHandler processes streaming events and updates message state.\ntype StepHandler struct {\nstate    *RunState\nmessages message.Service\nfunc NewStepHandler(state *RunState, msgs message.Service) *StepHandler {\nreturn &StepHandler{state: state, messages: msgs}\nEach callback has similar patterns (update message, persist, handle errors).',
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-start',
    quote:
      'func (h *StepHandler) OnReasoningStart(id string, reasoning fantasy.ReasoningContent) error {\nh.state.CurrentAssistant.AppendReasoningContent(reasoning.Text)',
  },
  {
    id: 'session-agent-refactor/5.1 update',
    quote: 'return h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
    settled: 'DESIGN 3: the draft file has it within 250 ms; the entry when it is finished.',
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-delta',
    quote:
      'func (h *StepHandler) OnReasoningDelta(id string, text string) error {\nh.state.CurrentAssistant.AppendReasoningContent(text)\nreturn h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-end',
    quote:
      'func (h *StepHandler) OnReasoningEnd(id string, reasoning fantasy.ReasoningContent) error {\nh.state.CurrentAssistant.FinishThinking()\nreturn h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
  },
  {
    id: 'session-agent-refactor/5.1 signatures',
    quote:
      'h.extractReasoningSignatures(reasoning)\nfunc (h *StepHandler) extractReasoningSignatures(reasoning fantasy.ReasoningContent) {',
  },
  {
    id: 'session-agent-refactor/5.1 anthropic-signature',
    quote:
      'if data, ok := reasoning.ProviderMetadata[anthropic.Name]; ok {\nif r, ok := data.(*anthropic.ReasoningOptionMetadata); ok {\nh.state.CurrentAssistant.AppendReasoningSignature(r.Signature)',
  },
  {
    id: 'session-agent-refactor/5.1 google-signature',
    quote:
      'if data, ok := reasoning.ProviderMetadata[google.Name]; ok {\nif r, ok := data.(*google.ReasoningMetadata); ok {\nh.state.CurrentAssistant.AppendThoughtSignature(r.Signature, r.ToolID)',
  },
  {
    id: 'session-agent-refactor/5.1 openai-reasoning',
    quote:
      'if data, ok := reasoning.ProviderMetadata[openai.Name]; ok {\nif r, ok := data.(*openai.ResponsesReasoningMetadata); ok {\nh.state.CurrentAssistant.SetReasoningResponsesData(r)',
  },
  {
    id: 'session-agent-refactor/5.1 leading-newline',
    quote:
      'func (h *StepHandler) OnTextDelta(id string, text string) error {\n// Strip leading newline from initial text content.\nif len(h.state.CurrentAssistant.Parts) == 0 {\ntext = strings.TrimPrefix(text, "\\n")',
  },
  {
    id: 'session-agent-refactor/5.1 text-appended',
    quote:
      'h.state.CurrentAssistant.AppendContent(text)\nreturn h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
  },
  {
    id: 'session-agent-refactor/5.1 tool-input-start',
    quote:
      'func (h *StepHandler) OnToolInputStart(id string, toolName string) error {\ntoolCall := message.ToolCall{\nID:               id,\nName:             toolName,\nProviderExecuted: false,\nFinished:         false,\nh.state.CurrentAssistant.AddToolCall(toolCall)\nreturn h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
    settled: 'Without `Finished`: a call whose input never was whole has `partial_input`.',
  },
  {
    id: 'session-agent-refactor/5.1 tool-call',
    quote:
      'func (h *StepHandler) OnToolCall(tc fantasy.ToolCallContent) error {\ntoolCall := message.ToolCall{\nID:               tc.ToolCallID,\nName:             tc.ToolName,\nInput:            tc.Input,\nProviderExecuted: false,\nFinished:         true,\nh.state.CurrentAssistant.AddToolCall(toolCall)\nreturn h.messages.Update(h.state.Ctx, *h.state.CurrentAssistant)',
  },
  {
    id: 'session-agent-refactor/5.1 tool-result',
    quote:
      'func (h *StepHandler) OnToolResult(result fantasy.ToolResultContent) error {\ntoolResult := convertToToolResult(result)\n_, err := h.messages.Create(h.state.Ctx, h.state.CurrentAssistant.SessionID, message.CreateMessageParams{\nRole:  message.Tool,\nParts: []message.ContentPart{toolResult},\nreturn err',
  },
  {
    id: 'session-agent-refactor/5.1 prepare-step',
    quote:
      '// PrepareStep creates the assistant message and injects context values.\nfunc (h *StepHandler) PrepareStep(\nctx context.Context,\nopts fantasy.PrepareStepFunctionOptions,\n) (context.Context, fantasy.PrepareStepResult, error) {\nprepared := fantasy.PrepareStepResult{Messages: opts.Messages}',
  },
  {
    id: 'session-agent-refactor/5.1 provider-options',
    quote:
      '// Clear provider options from messages.\nfor i := range prepared.Messages {\nprepared.Messages[i].ProviderOptions = nil',
    settled: 'DESIGN 2: what a provider gave goes back to the same provider and model only.',
  },
  {
    id: 'session-agent-refactor/5.1 queued-messages',
    quote:
      '// Process queued calls (existing logic).\nprepared.Messages = h.processQueuedMessages(ctx, prepared.Messages)\nfunc (h *StepHandler) processQueuedMessages(ctx context.Context, msgs []fantasy.Message) []fantasy.Message {\n// Existing queue processing logic - moved from inline callback.\n// (Implementation details omitted for brevity - copy from existing code)\nreturn msgs',
  },
  {
    id: 'session-agent-refactor/5.1 transformations',
    quote: '// Provider-specific transformations.\nprepared.Messages = h.state.TransformMessages(prepared.Messages)',
    settled: 'Each adapter puts the messages into its own format.',
  },
  { id: 'session-agent-refactor/5.1 dedupe', quote: 'DedupeToolOutputs(prepared.Messages)' },
  {
    id: 'session-agent-refactor/5.1 cache-markers',
    quote:
      '// Deduplicate and apply cache markers.\napplyCacheMarkers(prepared.Messages, h.state.HasSummary, h.state.CacheOptions)',
  },
  {
    id: 'session-agent-refactor/5.1 create-assistant',
    quote:
      '// Create assistant message.\nassistantMsg, err := h.createAssistantMessage(ctx)\nif err != nil {\nreturn ctx, prepared, err\nh.state.CurrentAssistant = &assistantMsg\nreturn ctx, prepared, nil\nfunc (h *StepHandler) createAssistantMessage(ctx context.Context) (message.Message, error) {\nreturn h.messages.Create(ctx, h.state.Call.SessionID, message.CreateMessageParams{',
    settled: 'DESIGN 3: the entry is appended when the answer is finished.',
  },
  {
    id: 'session-agent-refactor/5.1 context-message-id',
    quote: '// Inject context values.\nctx = context.WithValue(ctx, tools.MessageIDContextKey, assistantMsg.ID)',
    settled: 'A tool is told its run and its call.',
  },
  {
    id: 'session-agent-refactor/5.1 context-images',
    quote: 'ctx = context.WithValue(ctx, tools.SupportsImagesContextKey, h.state.Model.CatwalkCfg.SupportsImages)',
    settled: 'The adapter leaves images out where the model cannot see them.',
  },
  {
    id: 'session-agent-refactor/5.1 assistant-role',
    quote: 'Role:     message.Assistant,\nParts:    []message.ContentPart{},',
  },
  {
    id: 'session-agent-refactor/5.1 assistant-model',
    quote: 'Model:    h.state.Model.ModelCfg.Model,\nProvider: h.state.Model.ModelCfg.Provider,',
  },
  {
    id: 'session-agent-refactor/5.1 system-messages',
    quote:
      'prepared.Messages = h.injectSystemMessages(prepared.Messages)\nfunc (h *StepHandler) injectSystemMessages(msgs []fantasy.Message) []fantasy.Message {\nif h.state.Call.TemplateContext != "" {\nmsgs = append([]fantasy.Message{\nfantasy.NewSystemMessage(h.state.Call.TemplateContext),\n}, msgs...)\nif h.state.PromptPrefix != "" {\nmsgs = append([]fantasy.Message{\nfantasy.NewSystemMessage(h.state.PromptPrefix),\n}, msgs...)\nreturn msgs',
    settled:
      'DESIGN 2: the system prompt is one `system` entry, sent first; what a template says is in the user message.',
  },
  {
    id: 'session-agent-refactor/5.2 strips-newline',
    quote:
      'func TestStepHandler_OnTextDelta(t *testing.T) {\nt.Run("strips leading newline on first content", func(t *testing.T) {\nmsgs := &fakeMessageService{}\nstate := &RunState{\nCurrentAssistant: &message.Message{Parts: []message.ContentPart{}},\nhandler := NewStepHandler(state, msgs)\nerr := handler.OnTextDelta("id", "\\nHello")\nrequire.NoError(t, err)\nrequire.Equal(t, "Hello", state.CurrentAssistant.Content().Text)',
  },
  {
    id: 'session-agent-refactor/5.2 keeps-newline',
    quote:
      't.Run("preserves newlines after first content", func(t *testing.T) {\nCurrentAssistant: &message.Message{\nParts: []message.ContentPart{message.TextContent{Text: "First"}},\nhandler := NewStepHandler(state, msgs)\nerr := handler.OnTextDelta("id", "\\nSecond")\nrequire.NoError(t, err)\nrequire.Contains(t, state.CurrentAssistant.Content().Text, "\\nSecond")',
  },
  {
    id: 'session-agent-refactor/5.2 anthropic-signature',
    quote:
      'func TestStepHandler_OnReasoningEnd(t *testing.T) {\nt.Run("extracts anthropic signature", func(t *testing.T) {\n// Test provider-specific metadata extraction',
  },
  {
    id: 'session-agent-refactor/5.2 finishes-thinking',
    quote: 't.Run("finishes thinking state", func(t *testing.T) {\n// Verify FinishThinking() is called',
  },
  {
    id: 'session-agent-refactor/5.2 template-first',
    quote:
      'func TestStepHandler_PrepareStep(t *testing.T) {\nt.Run("injects template context as first system message", func(t *testing.T) {\n// Test system message ordering',
    settled: 'DESIGN 2: the system prompt is sent first, and nothing else is a system message.',
  },
  {
    id: 'session-agent-refactor/5.2 cache-markers',
    quote: 't.Run("applies cache markers correctly", func(t *testing.T) {\n// Test cache marker placement',
  },
  {
    id: 'session-agent-refactor/5.2 creates-assistant',
    quote: 't.Run("creates assistant message", func(t *testing.T) {\n// Verify message creation',
  },
  {
    id: 'session-agent-refactor/6 no-sharing',
    quote: '| State race conditions | Low | High | `RunState` is goroutine-local; no sharing |',
  },
  { id: 'session-agent-refactor/7 short-functions', quote: '**No function exceeds 100 lines** in new files' },
  { id: 'session-agent-refactor/7 short-run', quote: '**`Run()` is under 80 lines** after refactor' },
  {
    id: 'session-agent-refactor/8 central-errors',
    quote:
      '**Where should error handling live?**\nOption A: In `StepHandler` (each callback handles its errors)\nOption B: In `StreamRunner` (centralized error handling)\n**Recommendation**: Option B - matches current pattern, easier to reason about',
    settled: 'DESIGN 3: `recoverFrom`, one pure function.',
  },
  {
    id: 'session-agent-refactor/8 queue-place',
    quote:
      "**Should queue processing remain in `sessionAgent` or move to a separate `QueueManager`?**\n**Recommendation**: Keep in `sessionAgent` for now; it's only ~50 lines",
    settled: 'DESIGN 6: the inbox of the session; there is no queue manager.',
  },
] as const satisfies Requirement[]
