import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write } from '../../command-line/io.ts'
import { runTour } from '../../tour/run-tour.ts'
import { Storyteller } from '../../tour/storyteller.ts'

export const tour: CommandRun = async (invocation, io) => {
  const isFast = flag(invocation, 'fast')
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-tour-')))
  try {
    await runTour({ folder, isFast, story: new Storyteller(io, { isFast }), io })
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  const { registry } = await surroundingsOf(io, { cwd: io.cwd })
  const servers = await registry.discover(io.signal)
  const isUsable = (await registry.list()).some(({ key }) => key.type !== 'missing')
  // Without an installation, the bare command does not exist.
  const command = io.env['npm_command'] === 'exec' ? 'npx tapetree' : 'tapetree'
  await write(io.stdout, `\n${nextSteps({ command, isUsable, servers: servers.map(({ name }) => name) })}`)
  return exitCodes.ok
}

interface Surroundings {
  /** How the user starts the command. */
  command: string
  isUsable: boolean
  servers: readonly string[]
}

function nextSteps({ command, isUsable, servers }: Surroundings): string {
  const local = servers.length > 0 ? ` (${servers.join(' and ')} runs here)` : ''
  const steps: [string, string][] = isUsable
    ? [
        [command, 'chat in this folder'],
        [`${command} models --usable`, `list models you can use${local}`],
      ]
    : [
        [`${command} login anthropic`, 'store a key; openai, google and others work as well'],
        [`${command} models`, 'list all models, including those served on this machine'],
        [command, 'then chat in this folder'],
      ]
  const width = Math.max(...steps.map(([step]) => step.length)) + 4
  return `Next steps:\n${steps.map(([step, effect]) => `  ${step.padEnd(width)}${effect}\n`).join('')}`
}
