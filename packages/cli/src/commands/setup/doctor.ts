import { stylesFor, hasColor, write, printJson, type Styles, type Io } from '../../command-line/io.ts'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { chosenStore } from '../../host/store-address.ts'
import { placesOf } from '../../host/places.ts'
import {
  attempt,
  failed,
  ok,
  warning,
  folderChecks,
  machineChecks,
  sessionChecks,
  storeChecks,
  type Check,
} from '../../setup/doctor-checks.ts'
import { snapshotChecks } from '../../setup/snapshot-checks.ts'
import { snakeNames } from '../../text/json-text.ts'
import { referenceOf } from '@tapetree/agent/models'
import { keyHelp } from '../../command-line/failure-of.ts'

/** Runs all checks, fixes what it may if requested, and repeats the checks that it fixed. */
export const doctor: CommandRun = async (invocation, io) => {
  const mended: string[] = []
  const checkAll = async (): Promise<Check[]> => [
    ...(await allChecks(io)),
    ...(await attempt('store', async () => storeChecks(await chosenStore(invocation, io)))),
  ]
  let checks = await checkAll()
  if (flag(invocation, 'fix')) {
    for (const { name, mend } of checks) if (mend) mended.push(`${name}: ${await mend()}`)
    if (mended.length > 0) checks = await checkAll()
  }
  const hasFailed = checks.some(({ status }) => status === 'failed')
  if (flag(invocation, 'json')) {
    const plain = checks.map(({ mend, ...check }) => ({ ...check, canMend: mend !== undefined }))
    await printJson(io, snakeNames({ ok: !hasFailed, checks: plain, mended }))
  } else {
    const styles = stylesFor(io.stdout, io.env)
    for (const sentence of mended) await write(io.stdout, `${styles.green('mended')}   ${harmlessLine(sentence)}\n`)
    await write(io.stdout, checks.map((check) => lineOf(check, styles)).join(''))
    if (checks.some(({ mend }) => mend)) await write(io.stderr, 'Some problems can be fixed: tapetree doctor --fix\n')
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
    ...(await attempt('file snapshots', () => snapshotChecks(places, io))),
  ]
}

function lineOf({ name, status, says, fix }: Check, { green, yellow, red, dim }: Styles): string {
  const mark = { ok: green('ok     '), warning: yellow('warning'), failed: red('failed ') }[status]
  const next = fix === undefined || status === 'ok' ? '' : `           ${dim(harmlessLine(fix))}\n`
  return `${mark}  ${harmlessLine(name)}: ${harmlessLine(says)}\n${next}`
}

/** Settings, keys and models. Never shows a key or contacts a provider. */
async function modelChecks({ settings, registry }: Surroundings, { signal }: Pick<Io, 'signal'>): Promise<Check[]> {
  const { problems, values } = settings
  const servers = await registry.discover(signal)
  const models = await registry.list()
  const keys = new Map(models.map(({ provider, key }) => [provider, key]))
  const found = [...keys].flatMap(([provider, key]) => (key.type === 'found' ? [[provider, key.origin] as const] : []))
  const usable = models.filter(({ key }) => key.type !== 'missing')
  return [
    ...(problems.length === 0 ? [ok('settings', 'The settings are valid.')] : []),
    ...problems.map(({ message }) => failed('settings', message, 'tapetree config show --origin')),
    ...found.map(([provider, origin]) => ok('keys', `There is a key for ${provider}, from ${origin}.`)),
    ...servers.map(({ name, models: served }) =>
      ok('local models', `${name} serves ${served.length} models on this machine.`),
    ),
    ...(usable.length === 0
      ? [warning('keys', 'There is no key for any provider, and no model on this machine.', keyHelp.join(' or '))]
      : []),
    ...(values.model === undefined || usable.length === 0 ? [] : [checkModel(values.model)]),
  ]

  function checkModel(reference: string): Check {
    const model = models.find((each) => referenceOf(each) === reference)
    if (model === undefined)
      return warning('model', `The model in the settings, ${reference}, is not known.`, 'tapetree models')
    if (model.key.type !== 'missing') return ok('model', `New sessions use ${reference}.`)
    return warning(
      'model',
      `There is no key for the model in the settings, ${reference}.`,
      `tapetree login ${model.provider}`,
    )
  }
}

/** Whether the terminal can show the chat well. */
function terminalChecks({ stdout, env }: Pick<Io, 'stdout' | 'env'>): Check[] {
  if (stdout.isTTY !== true) return [ok('terminal', 'The output is not a terminal: nothing to check.')]
  const { columns = 0, rows = 0 } = stdout
  const size = `The terminal has ${columns} columns and ${rows} rows`
  return [
    columns < 60 || rows < 16
      ? warning('terminal', `${size}, which is small for the chat.`, 'Make the window larger.')
      : ok('terminal', `${size}.`),
    ok('colour', hasColor(stdout, env) ? `Color is on (${env['TERM'] ?? ''}).` : 'Color is off, as requested.'),
    hasUnicode(env)
      ? ok('unicode', 'The text encoding is Unicode.')
      : warning('unicode', 'The text encoding may not be Unicode.', 'export LANG=C.UTF-8'),
  ]
}

function hasUnicode(env: Io['env']): boolean {
  if (process.platform === 'win32') return true
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(locale) || (locale === '' && process.platform === 'darwin')
}
