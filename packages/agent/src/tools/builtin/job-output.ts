import { z } from 'zod'
import type { Command, CommandSandbox } from '../commands/command.ts'
import { boxedCallOf, boxNotes } from '../commands/box-notes.ts'
import { reportOutcome, reportRunning } from '../commands/report.ts'
import { descriptionOf } from './description.ts'
import type { Jobs } from '../commands/jobs.ts'
import { defineTool, type Tool, type ToolContext } from '../tool.ts'

const longestWaitMs = 10 * 60 * 1000

const schema = z.strictObject({
  jobId: z.string().describe('The job id from bash.'),
  since: z.int().min(0).optional().describe('Shows the output from this byte on; default: all of it.'),
  waitMs: z
    .int()
    .min(0)
    .max(longestWaitMs)
    .optional()
    .describe('Waits up to this many milliseconds for the job to end.'),
})

/** Reads the output of a job, and how it ended. */
export function jobOutputTool({ jobs, sandbox }: { jobs: Jobs; sandbox?: CommandSandbox }): Tool {
  return defineTool({
    name: 'job_output',
    description: descriptionOf('job-output'),
    schema,
    readOnly: true,
    replay: 'safe',
    deadlineMs: Infinity,
    access: () => [],
    run: async ({ jobId, since = 0, waitMs = 0 }, context) => {
      const command = await jobs.find(jobId, context.localFolder)
      if (!command) return { content: `There is no job ${jobId} in this session.`, isError: true }
      if (waitMs > 0) await waitForEnd(command, waitMs, context)
      const state = await command.state()
      const hasEnded = state.type === 'ended' || state.type === 'lost'
      const call = sandbox && (await boxedCallOf(command))
      const notes = sandbox && call ? await boxNotes(command, { sandbox, call, context, hasEnded }) : []
      if (hasEnded) {
        const { content } = await reportOutcome(command, state, context, { from: since, notes })
        return { content }
      }
      const text = (nextOffset: number): string => `Still running. Read more with since ${nextOffset}.`
      return reportRunning(command, text, context, { from: since, notes })
    },
  })
}

async function waitForEnd(command: Command, waitMs: number, { clock, signal }: ToolContext): Promise<void> {
  const done = new AbortController()
  const both = AbortSignal.any([done.signal, signal])
  try {
    await Promise.race([command.wait({ signal: both }), clock.wait(waitMs, both)])
  } finally {
    done.abort()
  }
}
