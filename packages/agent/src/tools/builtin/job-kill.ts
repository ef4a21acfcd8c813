import { z } from 'zod'
import { reportOutcome } from '../commands/report.ts'
import { descriptionOf } from './description.ts'
import type { Jobs } from '../commands/jobs.ts'
import { defineTool, type Tool } from '../tool.ts'

const schema = z.strictObject({ jobId: z.string().describe('The job id from bash.') })

/** Stops a job and all of its processes. */
export function jobKillTool({ jobs }: { jobs: Jobs }): Tool {
  return defineTool({
    name: 'job_kill',
    description: descriptionOf('job-kill'),
    schema,
    replay: 'safe',
    access: () => [],
    run: async ({ jobId }, context) => {
      const command = await jobs.find(jobId, context.localFolder)
      if (!command) return { content: `There is no job ${jobId} in this session.`, isError: true }
      const outcome = await command.stop('job_kill')
      if (outcome.type === 'unclaimed') return { content: '[It had not started, and will not start.]' }
      if (outcome.type === 'lost') await command.endStrays()
      const { content } = await reportOutcome(command, outcome, context)
      return { content }
    },
  })
}
