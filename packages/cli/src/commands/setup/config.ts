import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write, printJson } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import { originText, settingRows } from '../../setup/setting-rows.ts'

/** The exit code is 3 if the settings have a problem, so that a script can tell. */
export const configShow: CommandRun = async (invocation, { stdout, stderr, ...io }) => {
  const { settings } = await surroundingsOf(io, { cwd: io.cwd })
  const { problems } = settings
  const rows = settingRows(settings, io.env)
  if (flag(invocation, 'json')) await printJson({ stdout }, { settings: rows, problems })
  else {
    const hasOrigin = flag(invocation, 'origin')
    const shown = rows.filter(({ value }) => value !== undefined || flag(invocation, 'all'))
    const table = outputTable(
      [{ title: 'SETTING' }, { title: 'VALUE', flexible: true }, ...(hasOrigin ? [{ title: 'FROM' }] : [])],
      shown.map(({ key, value, origin }) => [
        harmlessLine(key),
        value === undefined ? '' : harmlessLine(JSON.stringify(value)),
        harmlessLine(originText(origin)),
      ]),
      stdout.isTTY ? stdout.columns : undefined,
    )
    await write(stdout, table)
    for (const { message } of problems) await write(stderr, `${harmless(message)}\n`)
  }
  return problems.length === 0 ? exitCodes.ok : exitCodes.configuration
}

export const configPath: CommandRun = async (invocation, io) => {
  const { config, sessions, state, runtime } = placesOf(io)
  const settings = await settingsFile(config)
  const places = { settings, config, sessions, state, runtime }
  if (flag(invocation, 'json')) await printJson(io, places)
  else await write(io.stdout, outputTable([{ title: 'WHAT' }, { title: 'WHERE' }], Object.entries(places)))
  return exitCodes.ok
}

/** The file that is read, or the one to create. */
async function settingsFile(folder: string): Promise<string> {
  for (const name of ['settings.json', 'settings.yaml', 'settings.yml']) {
    const path = join(folder, name)
    if (await stat(path).catch(() => undefined)) return path
  }
  return join(folder, 'settings.json')
}
