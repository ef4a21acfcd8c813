/** Runs commands where they can change the working folder and nothing else. */
export { probeSandbox, type ProbeOptions, type SandboxSupport } from './probe.ts'
export { Sandbox, type SandboxOptions } from './sandbox.ts'
export type { SurveyOptions } from './survey.ts'
export type { PolicyOptions } from './sandbox-policy.ts'
