// Acts as an agent that is about to be killed: announces one command as a tool call does, and runs it unless
// told not to. Arguments: the folder of the session, the input of the call, and whether to run it.
import { testContext } from '../../../testing/tool-context.ts'
import { bashTool } from '../bash.ts'
import { Jobs } from '../../commands/jobs.ts'

const [localFolder = '', input = '', isRun = ''] = process.argv.slice(2)
const context = testContext({ cwd: localFolder, localFolder, observe: (text) => say({ observed: text }) })
const checked = bashTool({ jobs: new Jobs() }).check(JSON.parse(input), context)
if (typeof checked === 'string') throw new Error(checked)
say({ start: await checked.start?.(context) })
if (isRun === 'run') say({ result: await checked.run(context) })
setInterval(() => undefined, 60_000)

function say(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}
