/** Extensions, and the host that runs them. */
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
export { defaultExtensionLimits, type ExtensionLimits, type ExtensionProblem } from './extensions/loaded-extension.ts'
export type { PromptChanges, TurnChanges } from './run/hooks.ts'
export type { TrustedModules } from './extensions/trusted-modules.ts'
export type { BoxProgram, OwnProgram, ProgramBox } from './tools/commands/program-box.ts'
