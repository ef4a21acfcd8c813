/** Runs commands where they can change the working folder and nothing else. */
export type { Blocked, BlockedDraft, CommandSandbox, RecordBlocked, TakenBack } from '../tools/commands/command.ts'
export type { BoxKind } from '../tools/tool.ts'
export { probeSandbox, type ProbeOptions, type SandboxSupport } from './probe.ts'
export type { CommandLimits } from '../tools/commands/exit-file.ts'
export { limitProblem } from './command-limits.ts'
export {
  KeptWriteError,
  KeptWrites,
  type BlockedWrites,
  type HomeWrites,
  type KeptFile,
  type KeptWrite,
  type KeptWritesPlace,
} from './kept-writes.ts'
export { NetworkKeeper, type CallTraffic, type HostAnswer, type NetworkKeeperOptions } from './network-keeper.ts'
export type { ProxyEvent, ProxyTarget } from './proxy.ts'
export { registryHosts, type RegistryOptions } from './registry-hosts.ts'
export { seatbeltProfile, type SeatbeltOptions } from './seatbelt-profile.ts'
export {
  Sandbox,
  sandboxFolder,
  type BoxOptions,
  type NetworkPlace,
  type SandboxOptions,
  type SandboxPlace,
} from './sandbox.ts'
export type { SurveyOptions } from './survey.ts'
export type { Place, PolicyOptions, SandboxPolicy } from './sandbox-policy.ts'
