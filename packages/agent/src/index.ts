export { systemClock, type Clock } from '@tapetree/session/util/wait'
export type { CommandHook, CommandHooks } from './extensions/command-hooks.ts'
export type {
  AddedProvider,
  CommandResult,
  Extension,
  ExtensionApi,
  ExtensionCommand,
  ExtensionProvider,
  ExtensionTool,
  ExtensionToolContext,
  Handler,
  HandlerContext,
  HookEvents,
  HookName,
  HookResults,
  OwnModelRequest,
  OwnProvider,
  ToolAccess,
} from './extensions/extension.ts'
export {
  ExtensionHost,
  type CommandOutcome,
  type ExtensionHostOptions,
  type ExtensionSource,
} from './extensions/extension-host.ts'
export {
  noHooks,
  type AgentStart,
  type BeforeCompact,
  type Hooks,
  type HookSession,
  type TurnEvent,
} from './run/hooks.ts'
export { defaultExtensionLimits, type ExtensionLimits, type ExtensionProblem } from './extensions/loaded-extension.ts'
export { readLiveDraft } from './run/draft.ts'
export { RunStopped, type LimitName, type Limits, type Spent } from './run/limits.ts'
export type { LiveEvent } from './run/events.ts'
export type { CompactionReason } from './summary/compaction.ts'
export type { RunEnd, SteerPolicy } from './run/run-settings.ts'
export { defaultMcpLimits, type McpLimits } from './mcp/limits.ts'
export type { McpServerState } from './mcp/mcp-server.ts'
export { McpServers, type McpServersOptions } from './mcp/mcp-servers.ts'
export { describeChange, type Pin, type PinChange, type PinStore } from './mcp/pinned-tools.ts'
export { mcpServerSchema, type McpServerSettings } from './mcp/server-settings.ts'
export type { OAuthRecord, OAuthStore } from './mcp/sign-in.ts'
export {
  thinkingLevels,
  type FinishReason,
  type Model,
  type ModelCall,
  type ModelLimits,
  type ModelPart,
  type ModelRequest,
  type ProviderMetadata,
  type ThinkingLevel,
} from './models/model.ts'
export { ModelError, type ModelErrorKind } from './models/model.ts'
export type { ModelPrices } from './models/model-prices.ts'
export { exitPlanTool } from './permissions/modes.ts'
export { PermissionGate, type GatePolicy, type PermissionGateOptions } from './permissions/gate.ts'
export { permissionModes, toolsFor, type PermissionMode } from './permissions/modes.ts'
export {
  Requests,
  type Answered,
  type PermissionRequest,
  type PermissionResult,
  type RequestAnswer,
} from './permissions/requests.ts'
export { noRules, ruleSchema, type Effect, type Rule, type RuleLayers } from './permissions/rules.ts'
export {
  allowanceOf,
  createRedactor,
  secretsOf,
  type RedactingByteStream,
  type RedactingStream,
  type RedactionPolicy,
  type Redactor,
} from '@tapetree/redact'
export type { ModelProvider, ProviderApi } from './models/registry/catalogue.ts'
export { cycleModels, type CycleOutcome } from './models/registry/model-info.ts'
export type { KeyCheck } from './models/registry/key-check.ts'
export { localServers, type FoundServer, type LocalServer } from './models/registry/local-servers.ts'
export { referenceOf, type KeyState, type ListedModel, type ModelInfo } from './models/registry/model-info.ts'
export {
  createModelRegistry,
  type ModelRegistry,
  type ModelRegistryOptions,
  type OpenedModel,
  type OpenModelOptions,
} from './models/registry/model-registry.ts'
export type { ProviderAddition } from './models/registry/provider-additions.ts'
export type { CredentialSource } from './models/registry/model-registry.ts'
export { RegistryError, type RegistryErrorCode } from './models/registry/model-info.ts'
export type { Instructions } from './resources/instructions.ts'
export { loadResources, type ResourcePlaces, type Resources } from './resources/load-resources.ts'
export type { Skill } from './resources/skills.ts'
export type { Template } from './resources/templates.ts'
export { abandonRun } from './run/abandon-run.ts'
export type { AgentEvent, AgentListener } from './run/events.ts'
export type { RunDeps } from './run/run-deps.ts'
export { AgentSession } from './agent/agent-session.ts'
export type {
  AgentSessionOptions,
  OrFunction,
  PromptOptions,
  PromptOutcome,
  ToolsContext,
} from './agent/agent-session-options.ts'
export type { AgentState } from './agent/open-session.ts'
export { summarizeBranch } from './summary/branch-summary.ts'
export { fromCallbacks, type StreamCallbacks } from './agent/events.ts'
export { checkRequest, checkRequests, type RequestCheck, type RequestCheckOptions } from './prompt/check-requests.ts'
export { openCodingAgent, type AgentProblem, type CodingAgent, type CodingAgentOptions } from './agent/coding-agent.ts'
export { compact, defaultCompaction, type CompactionOutcome, type CompactionSettings } from './summary/compaction.ts'
export { PromptError, type PromptImage } from './prompt/compose-message.ts'
export { contextSize } from './summary/context-size.ts'
export { createAgent, type Agent, type AgentAskOptions, type AgentOptions } from './agent/create-agent.ts'
export type { AskOptions, Reply, ReplyEvent } from './agent/reply.ts'
export { agentEvents, toolEvents, type AgentViewEvent, type ToolViewEvent } from './agent/events.ts'
export { expandPrompt, type Expansion, type UnknownCommand, type UsedResource } from './prompt/expand.ts'
export { onlyModel, type ModelSource } from './agent/model-choice.ts'
export { watchEnvironment } from './prompt/environment-facts.ts'
export { defaultRetry, recoverFrom, type RecoveryHistory, type RecoveryStep, type RetryPolicy } from './run/recovery.ts'
export { registryModels, type RegistryModelsOptions } from './agent/model-choice.ts'
export { planResume, type CallAction, type Matter, type ResumePlan } from './run/resume.ts'
export { run, type RunStart } from './run/run.ts'
export { defaultRunSettings, type RunSettings } from './run/run-settings.ts'
export type { Run } from './run/run-slot.ts'
export { parseShellInput, type BashOptions as ExecuteBashOptions, type ShellInput } from './agent/shell.ts'
export type { Subagent } from './agent/subagents.ts'
export { buildSystemPrompt, type StableEnvironment, type SystemPromptParts } from './prompt/system-prompt.ts'
export type { Settings } from './settings/built-in.ts'
export { configFolder } from './settings/config-files.ts'
export {
  Credential,
  Credentials,
  type CredentialOwner,
  type CredentialPlaces,
  type FoundCredential,
} from './settings/credentials.ts'
export { describeSettings, type SettingRow } from './settings/describe.ts'
export { inspectProject, type Project } from './settings/inspect-project.ts'
export { KeyringProblem, systemKeyring, type Keyring } from './settings/credentials.ts'
export { loadSettings, type LoadedSettings, type LoadSettingsOptions, type SettingsProblem } from './settings/layers.ts'
export type { Origin } from './settings/merge-settings.ts'
export { PinFile } from './settings/pin-file.ts'
export { findProjectRoot } from './settings/project.ts'
export { settingsJsonSchema, type SettingsInput } from './settings/schema.ts'
export { SettingsError, type SettingsErrorCode } from './settings/config-files.ts'
export { grantTrust, revokeTrust, settleTrust, trustOf, type ProjectTrust, type TrustChange } from './settings/trust.ts'
export { TrustStore, type Grant } from './settings/trust-store.ts'
export { allTools, type AllToolsOptions } from './tools/builtin/all-tools.ts'
export { askUserTool } from './tools/builtin/ask-user.ts'
export { bashTool, type BashOptions } from './tools/builtin/bash.ts'
export { editTool } from './tools/builtin/edit.ts'
export { fetchTool } from './tools/builtin/fetch.ts'
export { findTool } from './tools/builtin/find.ts'
export { allowAll, type Gate, type GateCall, type Verdict } from './tools/tool.ts'
export { grepTool } from './tools/builtin/grep.ts'
export { jobKillTool } from './tools/builtin/job-kill.ts'
export { jobOutputTool } from './tools/builtin/job-output.ts'
export { Jobs } from './tools/commands/jobs.ts'
export { lsTool } from './tools/builtin/ls.ts'
export { readTool } from './tools/builtin/read.ts'
export { todoWriteTool } from './tools/builtin/todo-write.ts'
export {
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
export { writeTool } from './tools/builtin/write.ts'
