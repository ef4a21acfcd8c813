import type { Requirement } from '../requirement.ts'

/** The examples of use. */
export const examples = [
  {
    id: 'agent-module/example create',
    says: 'A program creates an agent with a model.',
    lines: { 'With TUI (Chat Page)': ['9510d4ef', 'c3d754cf', 'b2b9bbd0'], 'With Tools Registry': ['c3d754cf'] },
  },
  {
    id: 'agent-module/example default-prompt',
    says: 'A program uses the default system prompt.',
    lines: { 'With TUI (Chat Page)': ['3b51e620'] },
    settled: '`buildSystemPrompt(…)` returns ours, with facts about the environment.',
  },
  {
    id: 'agent-module/example working-dir',
    says: 'A program sets the working directory.',
    lines: { 'With TUI (Chat Page)': ['8ba051c4'] },
  },
  {
    id: 'agent-module/example hub',
    says: 'A program can receive events.',
    lines: { 'With TUI (Chat Page)': ['411fbafd'] },
    settled: 'Programs subscribe to them.',
  },
  {
    id: 'agent-module/example send',
    says: 'A program sends user input with callbacks.',
    lines: { 'With TUI (Chat Page)': ['e673cd89'] },
    settled: 'Callbacks are members of the options.',
  },
  {
    id: 'agent-module/example on-text-delta',
    says: 'A program renders text deltas.',
    lines: { 'With TUI (Chat Page)': ['d4853d7b', '9a00e06e', 'c17d0469'] },
    settled: 'The callback returns nothing.',
  },
  {
    id: 'agent-module/example on-tool-call',
    says: 'A program shows tool calls.',
    lines: { 'With TUI (Chat Page)': ['b5e72064', '09711554'] },
  },
  {
    id: 'agent-module/example tools',
    says: 'A program passes all tools of a registry.',
    lines: { 'With TUI (Chat Page)': ['efef9cfa'], 'With Tools Registry': ['efef9cfa', '2d30f394', '18a0fcc0'] },
    settled: '`allTools()`; the agent has the working directory.',
  },
  {
    id: 'agent-module/example model-from-builder',
    says: 'A program builds models from its configuration.',
    lines: { 'With Provider/Fantasy': ['e89d5b43', '0bc33489', 'f7c5575b'] },
    settled: '`createModelRegistry(…).open(reference)`.',
  },
  {
    id: 'agent-module/example model',
    says: 'A program passes the built model to the agent.',
    lines: { 'With Tools Registry': ['c3d754cf'], 'With Provider/Fantasy': ['c3d754cf', '7ad1d801'] },
  },
] as const satisfies readonly Requirement[]
