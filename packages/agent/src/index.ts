export type { LiveEvent, AgentEvent, AgentListener } from './run/events.ts'
export type { RunEnd, RunSettings } from './run/run-settings.ts'
export { type Model, type ThinkingLevel, ModelError, type ModelErrorKind } from './models/model.ts'
export { AgentSession } from './agent/agent-session.ts'
export type {
  AgentSessionOptions,
  OrFunction,
  PromptOptions,
  PromptOutcome,
  ToolsContext,
} from './agent/agent-session-options.ts'
export type { AgentState } from './agent/open-session.ts'
export {
  fromCallbacks,
  type StreamCallbacks,
  agentEvents,
  toolEvents,
  type AgentViewEvent,
  type ToolViewEvent,
} from './agent/events.ts'
export { openCodingAgent, type AgentProblem, type CodingAgent, type CodingAgentOptions } from './agent/coding-agent.ts'
export { PromptError, type PromptImage } from './prompt/compose-message.ts'
export { createAgent, type Agent, type AgentAskOptions, type AgentOptions } from './agent/create-agent.ts'
export type { AskOptions, Reply, ReplyEvent } from './agent/reply.ts'
export { onlyModel, type ModelSource } from './agent/model-choice.ts'
export type { Run } from './run/run-slot.ts'
export type { BashOptions as ExecuteBashOptions } from './agent/shell.ts'
export type { Subagent } from './agent/subagents.ts'
export { allTools } from './tools/builtin/all-tools.ts'
export {
  allowAll,
  type Gate,
  type GateCall,
  type Verdict,
  defineTool,
  type Access,
  type Answer,
  type CheckedCall,
  type Question,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOptions,
  type ToolOutput,
} from './tools/tool.ts'
export type { InputSchema, JsonSchema, StandardSchema, ToolInput } from './tools/tool-input.ts'
