export { systemClock, type Clock } from './clock.ts'
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
} from './extensions/hooks.ts'
export { defaultExtensionLimits, type ExtensionLimits, type ExtensionProblem } from './extensions/loaded-extension.ts'
export { readLiveDraft } from './loop/draft.ts'
export { RunStopped, type LimitName, type Limits, type Spent } from './loop/limits.ts'
export type { CompactionReason, LiveEvent } from './loop/live-event.ts'
export type { RunEnd, SteerPolicy } from './loop/loop-context.ts'
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
export { ModelError, type ModelErrorKind } from './models/model-error.ts'
export type { ModelPrices } from './models/model-prices.ts'
export { exitPlanTool } from './permissions/exit-plan.ts'
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
export { secretsOf } from './redaction/known-values.ts'
export type { RedactingByteStream, RedactingStream } from './redaction/redacting-stream.ts'
export { allowanceOf, type RedactionPolicy } from './redaction/redaction-policy.ts'
export { createRedactor, type Redactor } from './redaction/redactor.ts'
export type { ModelProvider, ProviderApi } from './registry/catalogue.ts'
export { cycleModels, type CycleOutcome } from './registry/cycle-models.ts'
export type { KeyCheck } from './registry/key-check.ts'
export { localServers, type FoundServer, type LocalServer } from './registry/local-servers.ts'
export { referenceOf, type KeyState, type ListedModel, type ModelInfo } from './registry/model-info.ts'
export {
  createModelRegistry,
  type ModelRegistry,
  type ModelRegistryOptions,
  type OpenedModel,
  type OpenModelOptions,
} from './registry/model-registry.ts'
export type { ProviderAddition } from './registry/provider-additions.ts'
export type { CredentialSource } from './registry/provider-keys.ts'
export { RegistryError, type RegistryErrorCode } from './registry/registry-error.ts'
export type { Instructions } from './resources/instructions.ts'
export { loadResources, type ResourcePlaces, type Resources } from './resources/load-resources.ts'
export type { Skill } from './resources/skills.ts'
export type { Template } from './resources/templates.ts'
export { abandonRun } from './session/abandon-run.ts'
export type { AgentEvent, AgentListener } from './session/agent-event.ts'
export type { AgentParts } from './session/agent-parts.ts'
export { AgentSession, type PromptOptions, type PromptOutcome } from './session/agent-session.ts'
export type { AgentSessionOptions, ToolsContext } from './session/agent-session-options.ts'
export type { AgentState } from './session/agent-state.ts'
export { summariseBranch } from './session/branch-summary.ts'
export { callBack, type StreamCallbacks } from './session/callbacks.ts'
export { checkRequest, checkRequests, type RequestCheck, type RequestCheckOptions } from './session/check-requests.ts'
export {
  openCodingAgent,
  type AgentProblem,
  type CodingAgent,
  type CodingAgentOptions,
} from './session/coding-agent.ts'
export { compact, defaultCompaction, type CompactionOutcome, type CompactionSettings } from './session/compaction.ts'
export { PromptError, type PromptImage } from './session/compose-message.ts'
export { contextSize } from './session/context-size.ts'
export { createAgent, type Agent, type AgentConfig, type SendOptions } from './session/create-agent.ts'
export { agentEvents, toolEvents, type AgentViewEvent, type ToolViewEvent } from './session/event-views.ts'
export { expandPrompt, type Expansion, type UnknownCommand, type UsedResource } from './session/expand.ts'
export { onlyModel, type ModelSource } from './session/model-choice.ts'
export { newsTeller } from './session/news.ts'
export {
  defaultRetry,
  recoverFrom,
  type RecoveryHistory,
  type RecoveryStep,
  type RetryPolicy,
} from './session/recovery.ts'
export { registryModels, type RegistryModelsOptions } from './session/registry-models.ts'
export { planResume, type CallAction, type Matter, type ResumePlan } from './session/resume.ts'
export { run, type RunStart } from './session/run.ts'
export { defaultRunSettings, type RunSettings } from './session/run-settings.ts'
export type { Run } from './session/shared-session.ts'
export { shellWordsOf, type BashOptions as ExecuteBashOptions, type ShellWords } from './session/shell.ts'
export type { Subagent } from './session/subagents.ts'
export { buildSystemPrompt, type StableEnvironment, type SystemPromptParts } from './session/system-prompt.ts'
export type { Settings } from './settings/built-in.ts'
export { configFolder } from './settings/config-folder.ts'
export {
  Credential,
  Credentials,
  type CredentialOwner,
  type CredentialPlaces,
  type FoundCredential,
} from './settings/credentials.ts'
export { describeSettings, type SettingRow } from './settings/describe.ts'
export { inspectProject, type Project } from './settings/inspect-project.ts'
export { KeyringProblem, systemKeyring, type Keyring } from './settings/keyring.ts'
export { loadSettings, type LoadedSettings, type LoadSettingsOptions, type SettingsProblem } from './settings/layers.ts'
export type { Origin } from './settings/merge-settings.ts'
export { PinFile } from './settings/pin-file.ts'
export { findProjectRoot } from './settings/project.ts'
export { settingsJsonSchema, type SettingsInput } from './settings/schema.ts'
export { SettingsError, type SettingsErrorCode } from './settings/settings-error.ts'
export { grantTrust, revokeTrust, settleTrust, trustOf, type ProjectTrust, type TrustChange } from './settings/trust.ts'
export { TrustStore, type Grant } from './settings/trust-store.ts'
export { allTools, type AllToolsOptions } from './tools/all-tools.ts'
export { askUserTool } from './tools/ask-user.ts'
export { bashTool, type BashOptions } from './tools/bash.ts'
export { editTool } from './tools/edit.ts'
export { fetchTool } from './tools/fetch.ts'
export { findTool } from './tools/find.ts'
export { openGate, type Gate, type GateCall, type Verdict } from './tools/gate.ts'
export { grepTool } from './tools/grep.ts'
export { jobKillTool } from './tools/job-kill.ts'
export { jobOutputTool } from './tools/job-output.ts'
export { Jobs } from './tools/jobs.ts'
export { lsTool } from './tools/ls.ts'
export { readTool } from './tools/read.ts'
export { todoWriteTool } from './tools/todo-write.ts'
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
export { writeTool } from './tools/write.ts'
