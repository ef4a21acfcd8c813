import { stylesFor, type Styles } from '../../command-line/colour.ts'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write, type Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { attempt, type Check } from '../../setup/doctor/check.ts'
import { folderChecks } from '../../setup/doctor/folder-checks.ts'
import { machineChecks } from '../../setup/doctor/machine-checks.ts'
import { modelChecks } from '../../setup/doctor/model-checks.ts'
import { sessionChecks } from '../../setup/doctor/session-checks.ts'
import { terminalChecks } from '../../setup/doctor/terminal-checks.ts'
import { printJson } from '../../command-line/print-json.ts'
import { snakeNames } from '../../text/snake-names.ts'

/** Looks at everything, mends what may be mended if asked, and looks again at what it mended. */
export const doctor: CommandRun = async (invocation, io) => {
  const mended: string[] = []
  let checks = await allChecks(io)
  if (flag(invocation, 'fix')) {
    for (const { name, mend } of checks) if (mend) mended.push(`${name}: ${await mend()}`)
    if (mended.length > 0) checks = await allChecks(io)
  }
  const hasFailed = checks.some(({ status }) => status === 'failed')
  if (flag(invocation, 'json')) {
    const plain = checks.map(({ mend, ...check }) => ({ ...check, canMend: mend !== undefined }))
    await printJson(io, snakeNames({ ok: !hasFailed, checks: plain, mended }))
  } else {
    const styles = stylesFor(io.stdout, io.env)
    for (const sentence of mended) await write(io.stdout, `${styles.green('mended')}   ${harmlessLine(sentence)}\n`)
    await write(io.stdout, checks.map((check) => lineOf(check, styles)).join(''))
    if (checks.some(({ mend }) => mend)) await write(io.stderr, 'Some of it can be mended: tapetree doctor --fix\n')
  }
  return hasFailed ? exitCodes.configuration : exitCodes.ok
}

async function allChecks(io: Io): Promise<Check[]> {
  const places = placesOf(io)
  return [
    ...(await attempt('machine', () => machineChecks(places))),
    ...(await attempt('folders', () => folderChecks(places))),
    ...terminalChecks(io),
    ...(await attempt('models', async () => modelChecks(await surroundingsOf(io, { cwd: io.cwd }), io))),
    ...(await attempt('sessions', () => sessionChecks(places))),
  ]
}

function lineOf({ name, status, says, fix }: Check, { green, yellow, red, dim }: Styles): string {
  const mark = { ok: green('ok     '), warning: yellow('warning'), failed: red('failed ') }[status]
  const next = fix === undefined || status === 'ok' ? '' : `           ${dim(harmlessLine(fix))}\n`
  return `${mark}  ${harmlessLine(name)}: ${harmlessLine(says)}\n${next}`
}
