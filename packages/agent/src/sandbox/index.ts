/** Runs commands where they can change the working folder and nothing else. */
export { probeSandbox, type ProbeOptions, type SandboxSupport } from './probe.ts'
export type { CommandLimits } from './command-limits.ts'
export { NetworkKeeper, type NetworkKeeperOptions } from './network-keeper.ts'
export type { ProxyEvent, ProxyTarget } from './proxy.ts'
export { seatbeltProfile, type SeatbeltOptions } from './seatbelt-profile.ts'
export { Sandbox, type BoxOptions, type SandboxOptions } from './sandbox.ts'
export type { SurveyOptions } from './survey.ts'
export type { Place, PolicyOptions, SandboxPolicy } from './sandbox-policy.ts'
