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
  await write(io.stdout, `\n${nextSteps({ isUsable, servers: servers.map(({ name }) => name) })}`)
  return exitCodes.ok
}

function nextSteps({ isUsable, servers }: { isUsable: boolean; servers: readonly string[] }): string {
  const local = servers.length > 0 ? ` (${servers.join(' and ')} runs here)` : ''
  const lines = isUsable
    ? [
        'tapetree                     chat in this folder',
        'tapetree models --usable     list models you can use' + local,
      ]
    : [
        'tapetree login anthropic     store a key; openai, google and others work as well',
        'tapetree models              list all models, including those served on this machine',
        'tapetree                     then chat in this folder',
      ]
  return `Next steps:\n${lines.map((line) => `  ${line}\n`).join('')}`
}
