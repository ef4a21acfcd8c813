/** The built-in tools, one by one. */
export type { AllToolsOptions } from './tools/builtin/all-tools.ts'
export { askUserTool } from './tools/builtin/ask-user.ts'
export { bashTool, type BashOptions } from './tools/builtin/bash.ts'
export { editTool } from './tools/builtin/edit.ts'
export { fetchTool } from './tools/builtin/fetch.ts'
export { findTool } from './tools/builtin/find.ts'
export { grepTool } from './tools/builtin/grep.ts'
export { jobKillTool } from './tools/builtin/job-kill.ts'
export { jobOutputTool } from './tools/builtin/job-output.ts'
export { Jobs, type Job, type JobOutput, type ReadJobOptions } from './tools/commands/jobs.ts'
export { lsTool } from './tools/builtin/ls.ts'
export { readTool } from './tools/builtin/read.ts'
export { todoWriteTool } from './tools/builtin/todo-write.ts'
export { writeTool } from './tools/builtin/write.ts'
export type { ItemOf, ObjectOf, OfType, RequiredOf, ValueOf } from './tools/tool-input.ts'
export type { Returned } from './tools/tool.ts'
export type { CommandBox, CommandOptions } from './tools/commands/command.ts'
export type { EnvironmentOptions } from './tools/commands/environment.ts'
export type { FetchOptions } from './tools/builtin/fetch.ts'
export type { Address } from './tools/web/fetch-page.ts'
export type { SchemaIssue, StandardResult } from '@tapetree/session/util/structured-answer'
export {
  refusePrivateLiteral,
  requestPublic,
  systemNetwork,
  type Network,
  type PublicRequest,
} from './tools/web/fetch-page.ts'
export type { CommandExit } from './tools/commands/exit-file.ts'
export type { HostTarget, ReadingModel } from './tools/tool.ts'
export type { ProjectLanguageServers } from './agent/coding-agent.ts'
export type { LanguageServerState } from './language-servers/language-server.ts'
