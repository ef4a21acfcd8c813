import type { Requirement } from '../requirement.ts'

/** The examples of use. */
export const examples = [
  {
    id: 'agent-module/example create',
    quote: '// Create agent in cmd/root.go\nagent := agent.New(agent.Config{\nModel:        largeModel,',
  },
  {
    id: 'agent-module/example default-prompt',
    quote: 'SystemPrompt: agent.DefaultSystemPrompt,',
    settled: '`buildSystemPrompt(…)`: ours, with what is known of the environment.',
  },
  {
    id: 'agent-module/example working-dir',
    quote: 'WorkingDir:   workingDir,',
  },
  {
    id: 'agent-module/example hub',
    quote: 'Hub:          hub, // Optional: for event publishing',
    settled: 'DESIGN 6: whoever wants to hear subscribes.',
  },
  {
    id: 'agent-module/example send',
    quote: 'agent.Send(ctx, userInput, agent.SendOptions{}, agent.StreamCallbacks{',
    settled: 'Callbacks are members of the options.',
  },
  {
    id: 'agent-module/example on-text-delta',
    quote: 'OnTextDelta: func(text string) error {\n// Update UI with streaming text\nreturn nil',
    settled: 'Nothing is returned.',
  },
  {
    id: 'agent-module/example on-tool-call',
    quote: 'OnToolCall: func(tc agent.ToolCall) error {\n// Show tool being executed',
  },
  {
    id: 'agent-module/example tools',
    quote:
      'Tools:        registry.All(),\n// Tools are passed at agent creation\nregistry := tools.DefaultRegistry(workingDir)\nTools: registry.All(),',
    settled: "`allTools()`; the working folder is the agent's.",
  },
  {
    id: 'agent-module/example model-from-builder',
    quote:
      '// Model comes from provider builder\nbuilder := provider.NewBuilder(cfg)\nlargeModel, _, _ := builder.BuildModels(ctx)',
    settled: '`createModelRegistry(…).open(reference)`.',
  },
  {
    id: 'agent-module/example model',
    quote: 'agent := agent.New(agent.Config{\nModel: largeModel.Model, // fantasy.LanguageModel',
  },
] as const satisfies Requirement[]
