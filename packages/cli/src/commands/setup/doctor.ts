import { stylesFor, hasColour, type Styles } from '../../command-line/colour.ts'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { attempt, failed, ok, warning, type Check } from '../../setup/doctor/check.ts'
import { folderChecks } from '../../setup/doctor/folder-checks.ts'
import { machineChecks } from '../../setup/doctor/machine-checks.ts'
import { sessionChecks } from '../../setup/doctor/session-checks.ts'
import { snakeNames } from '../../text/json-text.ts'
import { referenceOf } from '@tapetree/agent'
import { keyHelp } from '../../command-line/failure-of.ts'

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

/** Settings, keys and models. No key is ever shown, and no provider is asked. */
async function modelChecks({ settings, registry }: Surroundings, { signal }: Pick<Io, 'signal'>): Promise<Check[]> {
  const { problems, values } = settings
  const servers = await registry.discover(signal)
  const models = await registry.list()
  const keys = new Map(models.map(({ provider, key }) => [provider, key]))
  const found = [...keys].flatMap(([provider, key]) => (key.type === 'found' ? [[provider, key.origin] as const] : []))
  const usable = models.filter(({ key }) => key.type !== 'missing')
  return [
    ...(problems.length === 0 ? [ok('settings', 'Nothing is wrong with them.')] : []),
    ...problems.map(({ message }) => failed('settings', message, 'tapetree config show --origin')),
    ...found.map(([provider, origin]) => ok('keys', `There is a key for ${provider}, from ${origin}.`)),
    ...servers.map(({ name, models: served }) => ok('local models', `${name} serves ${served.length} models here.`)),
    ...(usable.length === 0
      ? [warning('keys', 'There is no key for any provider, and no model on this machine.', keyHelp.join(' or '))]
      : []),
    ...(values.model === undefined || usable.length === 0 ? [] : [checkModel(values.model)]),
  ]

  function checkModel(reference: string): Check {
    const model = models.find((each) => referenceOf(each) === reference)
    if (model === undefined)
      return warning('model', `The model of the settings, ${reference}, is not in the list.`, 'tapetree models')
    if (model.key.type !== 'missing') return ok('model', `New sessions begin with ${reference}.`)
    return warning(
      'model',
      `There is no key for the model of the settings, ${reference}.`,
      `tapetree login ${model.provider}`,
    )
  }
}

/** Whether the chat can be shown well here. */
function terminalChecks({ stdout, env }: Pick<Io, 'stdout' | 'env'>): Check[] {
  if (stdout.isTTY !== true) return [ok('terminal', 'The output is no terminal here: nothing to check.')]
  const { columns = 0, rows = 0 } = stdout
  const size = `It has ${columns} columns and ${rows} rows`
  return [
    columns < 60 || rows < 16
      ? warning('terminal', `${size}, which is little for the chat.`, 'Make the window larger.')
      : ok('terminal', `${size}.`),
    ok(
      'colour',
      hasColour(stdout, env) ? `There are colours (${env['TERM'] ?? ''}).` : 'There are no colours, as asked for.',
    ),
    hasUnicode(env)
      ? ok('unicode', 'Its text is Unicode.')
      : warning('unicode', 'Its text may not be Unicode.', 'export LANG=C.UTF-8'),
  ]
}

function hasUnicode(env: Io['env']): boolean {
  if (process.platform === 'win32') return true
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(locale) || (locale === '' && process.platform === 'darwin')
}
