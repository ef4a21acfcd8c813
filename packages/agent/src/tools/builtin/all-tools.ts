import type { RedactionPolicy } from '@tapetree/redact'
import { askUserTool } from './ask-user.ts'
import { bashTool, type BashOptions } from './bash.ts'
import { editTool } from './edit.ts'
import { fetchTool } from './fetch.ts'
import { findTool } from './find.ts'
import { grepTool } from './grep.ts'
import { jobKillTool } from './job-kill.ts'
import { jobOutputTool } from './job-output.ts'
import { Jobs } from '../commands/jobs.ts'
import { lsTool } from './ls.ts'
import { readTool } from './read.ts'
import { todoWriteTool } from './todo-write.ts'
import type { Tool } from '../tool.ts'
import { writeTool } from './write.ts'

export interface AllToolsOptions {
  /** The background commands of the session. Default: a new set. */
  jobs?: Jobs
  bash?: Omit<BashOptions, 'jobs' | 'redaction'>
  /** What to redact from the output of commands before it is stored. Default: the session's policy. */
  redaction?: RedactionPolicy
  /** Allows `fetch` to reach this machine and private networks. */
  allowPrivateAddresses?: boolean
}

/** The tools of a coding agent. */
export function allTools(options: AllToolsOptions = {}): Tool[] {
  const { bash, redaction, allowPrivateAddresses = false, jobs = new Jobs() } = options
  return [
    readTool,
    writeTool,
    editTool,
    lsTool,
    grepTool,
    findTool,
    bashTool({ ...bash, ...(redaction && { redaction }), jobs }),
    jobOutputTool({ jobs, ...(bash?.sandbox && { sandbox: bash.sandbox }) }),
    jobKillTool({ jobs }),
    fetchTool({ allowPrivate: allowPrivateAddresses }),
    todoWriteTool,
    askUserTool,
  ]
}

const fileTools = new Set(['read', 'write', 'edit', 'ls', 'grep', 'find', 'bash', 'job_output', 'job_kill'])

/** Whether a tool of ours works on files or commands. The others run beside the model. */
export function needsFiles(tool: string): boolean {
  return fileTools.has(tool)
}
