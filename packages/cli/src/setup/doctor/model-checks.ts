import { referenceOf } from '@tapetree/agent'
import { keyHelp } from '../../command-line/failure-of.ts'
import type { Surroundings } from '../../host/surroundings.ts'
import type { Io } from '../../command-line/io.ts'
import { failed, ok, warning, type Check } from './check.ts'

/** Settings, keys and models. No key is ever shown, and no provider is asked. */
export async function modelChecks(
  { settings, registry }: Surroundings,
  { signal }: Pick<Io, 'signal'>,
): Promise<Check[]> {
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
