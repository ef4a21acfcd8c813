import type { ToolStartRecord } from '@tapetree/session/format'
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { z } from 'zod'
import { createRedactor, defaultPolicy, type RedactionPolicy } from '@tapetree/redact'
import {
  attach,
  startCommand,
  type Command,
  type CommandOptions,
  type CommandOutcome,
  type CommandSandbox,
} from '../commands/command.ts'
import { boxNotes, rememberBoxedCall, sandboxCallId } from '../commands/box-notes.ts'
import { commandEnvironment, type EnvironmentOptions } from '../commands/environment.ts'
import { currentBootId } from '../commands/process-table.ts'
import { LiveOutput } from '../commands/shown-output.ts'
import { reportOutcome, reportRunning } from '../commands/report.ts'
import { descriptionOf } from './description.ts'
import { newJobId, type Jobs } from '../commands/jobs.ts'
import {
  SessionSuspended,
  defineTool,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOutput,
} from '../tool.ts'

export interface BashOptions {
  jobs: Jobs
  environment?: EnvironmentOptions
  /** What to redact from the output of commands before it is stored. Default: the session's policy. */
  redaction?: RedactionPolicy
  /** Commands that take longer move to the background. */
  moveAfterMs?: number
  /** Deadline of commands that set none. */
  deadlineMs?: number
  /** The same for commands that start in the background. */
  backgroundDeadlineMs?: number
  /** Runs the commands in it that the gate allows only in a sandbox. */
  sandbox?: CommandSandbox
  limits?: Pick<CommandOptions, 'outputCapBytes' | 'outputLimitBytes' | 'graceMs' | 'lingerMs'>
}

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** Linux limits one argument of a program to this length. */
const longestCommandBytes = 128 * 1024 - 1
const maxDescription = 1000

const fields = z.strictObject({
  command: z
    .string()
    .min(1)
    .refine((command) => !command.includes('\0'), 'A command cannot contain a NUL character.')
    .refine(
      (command) => Buffer.byteLength(command) <= longestCommandBytes,
      `A command has at most ${longestCommandBytes} bytes; write a long script to a file and run that.`,
    )
    .describe('The command, as you would type it into bash.'),
  description: z
    .string()
    .refine(({ length }) => length <= maxDescription, `A description has at most ${maxDescription} characters.`)
    .optional()
    .describe('What it does, in five to ten words, for the user.'),
  timeoutMs: z.int().min(1).max(dayMs).optional().describe('Ends the command after this many milliseconds.'),
  background: z.boolean().optional().describe('Starts it as a job and returns at once, as for a server.'),
  outside: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'In permission mode sandboxed: why this command must run outside of the sandbox. Only after the sandbox blocked it. The user reads this and is asked each time.',
    ),
})

/** Every call has its own spool folder, whatever ids the model uses. */
function withJob<Input>(input: Input): Input & { jobId: string } {
  return { ...input, jobId: newJobId() }
}

const schemas = {
  plain: fields.omit({ outside: true }).transform(withJob),
  sandboxed: fields.transform(withJob),
}

type BashInput = z.output<typeof schemas.sandboxed>

/** Runs commands that survive this process. */
export function bashTool(options: BashOptions): Tool {
  const { jobs, moveAfterMs = minuteMs, deadlineMs = 30 * minuteMs, backgroundDeadlineMs = dayMs } = options
  const { limits, redaction, sandbox } = options
  const deadlineOf = ({ timeoutMs, background }: BashInput): number =>
    timeoutMs ?? (background ? backgroundDeadlineMs : deadlineMs)

  function attend(context: ToolContext): void {
    if (context.box !== 'writable') return
    const callId = sandboxCallId(context)
    sandbox?.attend?.({ callId, reach: (target, withdrawn) => context.reach(target, withdrawn) })
  }

  function leave(context: ToolContext): void {
    sandbox?.leave?.(sandboxCallId(context))
  }

  /** Starts a command that must not have begun. */
  async function begin(spool: string, input: BashInput, context: ToolContext): Promise<ToolOutput> {
    const { command, background = false } = input
    const { cwd, signal, box: kind } = context
    if (kind && !sandbox) throw new Error('This command may run only in a sandbox, and there is none.')
    const callId = sandboxCallId(context)
    const box = kind && (await sandbox?.box(cwd, { isReadOnly: kind === 'read-only', spool, callId }))
    if (kind) await rememberBoxedCall(spool, { callId: context.callId, kind })
    const env = { ...commandEnvironment(process.env, options.environment), ...box?.env }
    const order = {
      ...limits,
      ...(redaction && { redaction }),
      spool,
      command,
      cwd,
      env,
      ...(box && { box: box.argv, ...(box.limits && { limits: box.limits }) }),
      deadlineMs: deadlineOf(input),
    }
    attend(context)
    const started = await startCommand({ ...order, signal }).catch((error: unknown) => {
      leave(context)
      // The next process finds that it has not begun, and starts it.
      if (signal.reason instanceof SessionSuspended) throw signal.reason
      if (signal.aborted) return undefined
      throw error
    })
    if (!started) return { content: '[Stopped by the user before it started.]', isError: true }
    return background && !signal.aborted
      ? moveToBackground(started, { input, context, how: 'Started' })
      : settle(started, input, context)
  }

  /** Waits for the end, up to the limit. */
  async function settle(command: Command, input: BashInput, context: ToolContext): Promise<ToolOutput> {
    const { signal, clock } = context
    const live = new LiveOutput((text) => context.observe(text))
    const done = new AbortController()
    const stop = (): void => {
      // The command continues without this process, and is found again.
      if (signal.reason instanceof SessionSuspended) done.abort(signal.reason)
      // The loop abandons a command that cannot be stopped.
      else void command.stop('the user').catch(() => undefined)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    try {
      const over = command.wait({ signal: done.signal, onOutput: (piece) => live.take(piece) })
      const late = clock.wait(moveAfterMs, AbortSignal.any([done.signal, signal])).then(() => undefined)
      const outcome = await Promise.race([over, late.catch(() => over)])
      if (outcome?.type === 'lost') await command.endStrays()
      if (outcome) return await report(command, outcome, context)
      const seconds = Math.round(moveAfterMs / 1000)
      return await moveToBackground(command, { input, context, how: `Still running after ${seconds} s, and now` })
    } finally {
      signal.removeEventListener('abort', stop)
      done.abort()
    }
  }

  /** The outcome, with what the sandbox blocked. New control files stay only if the user agrees. */
  async function report(command: Command, outcome: CommandOutcome, context: ToolContext): Promise<ToolOutput> {
    leave(context)
    const { box: kind } = context
    if (!kind || !sandbox) return reportOutcome(command, outcome, context)
    const call = { callId: context.callId, kind }
    const notes = await boxNotes(command, { sandbox, call, context, hasEnded: true })
    return reportOutcome(command, outcome, context, { notes })
  }

  async function moveToBackground(
    command: Command,
    { input, context, how }: { input: BashInput; context: ToolContext; how: string },
  ): Promise<ToolOutput> {
    const redactor = createRedactor(redaction ?? defaultPolicy())
    const jobId = await jobs.keep(command, redactor.text(input.command))
    const text = (nextOffset: number): string =>
      `${how} in the background as ${jobId}. Read more with job_output, jobId ${jobId}, since ${nextOffset}; stop it with job_kill.`
    return reportRunning(command, text, context)
  }

  /** The outcome of a command that an earlier process started. */
  async function reattach(input: BashInput, start: ToolStart, given: ToolContext): Promise<ToolOutput> {
    const box = start.sandbox && (start.sandbox.writable.length === 0 ? ('read-only' as const) : ('writable' as const))
    const context = { ...given, ...(box && { box }) }
    const folder = jobs.folderOf(start, context.localFolder)
    if (folder === undefined) return unknown('its spool folder is not in this session')
    const command = attach(folder)
    const state = await command.state()
    if (state.type === 'ended') return report(command, state, context)
    if (start.host !== hostname()) return unknown(`it was started on another machine, ${start.host}`)
    if (start.bootId !== currentBootId()) return unknown('the machine has been restarted since')
    if (!existsSync(folder)) return unknown('its spool folder has been removed')
    if (command.forestall()) return begin(folder, input, context)
    attend(context)
    return input.background
      ? moveToBackground(command, { input, context, how: 'Started' })
      : settle(command, input, context)

    async function unknown(reason: string): Promise<ToolOutput> {
      return reportOutcome(attach(folder ?? ''), { type: 'lost', reason }, context)
    }
  }

  return defineTool({
    name: 'bash',
    description: descriptionOf('bash'),
    schema: sandbox ? schemas.sandboxed : schemas.plain,
    replay: 'reattach',
    deadlineMs: Infinity,
    access: ({ command, outside }: BashInput, { cwd }) => [
      {
        type: 'command',
        command,
        cwd,
        ...(sandbox && { canSandbox: true }),
        ...(outside !== undefined && { outside }),
      },
    ],
    start: async (input, { localFolder, clock, box }): Promise<StartDetails> => ({
      host: hostname(),
      bootId: currentBootId(),
      spool: await jobs.create(input.jobId, localFolder),
      deadline: new Date(clock.now() + deadlineOf(input)).toISOString(),
      ...(box && sandbox && { sandbox: await sandbox.details(box) }),
    }),
    run: async (input, context) => begin(await jobs.pathOf(input.jobId, context.localFolder), input, context),
    reattach,
    settled: (start, { localFolder }) => jobs.removeSpool(start, localFolder),
  })
}

type ToolStart = ToolStartRecord['toolStart']
