/** Agents of others, which do the turns of a session. */
export {
  foreignApi,
  type ForeignAgent,
  type ForeignCommand,
  type ForeignCommandOptions,
  type ForeignRun,
  type ForeignSteer,
} from './run/foreign-agent.ts'
export type { ForeignPlace } from './agent/coding-agent.ts'
export type { AgentProgramSettings } from './settings/schema.ts'
export { commandEnvironment } from './tools/commands/environment.ts'
export { OwnProcess, type OwnProcessOptions } from './tools/commands/own-process.ts'
export { inBox, type BoxedProgram } from './tools/commands/program-box.ts'
