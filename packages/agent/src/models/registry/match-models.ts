import { editDistance } from '../../util/edit-distance.ts'
import { referenceOf } from './model-info.ts'

interface Named {
  provider: string
  id: string
}

/**
 * The models that a name may mean, by how well it fits: as a whole, as a beginning, as any part. Within each of them, those whose
 * id it is come before those whose id only ends with it, as those of a host do. Upper and lower case are the same.
 */
export function matchModels<T extends Named>(name: string, models: readonly T[]): T[][][] {
  const wanted = name.toLowerCase()
  if (wanted === '') return []
  const whole = (model: T): string[] => [model.id.toLowerCase(), referenceOf(model).toLowerCase()]
  const fits: ((model: T) => boolean)[][] = [
    [(model) => whole(model).includes(wanted), (model) => lastPart(model.id) === wanted],
    [(model) => whole(model).some((each) => each.startsWith(wanted)), (model) => lastPart(model.id).startsWith(wanted)],
    [(model) => referenceOf(model).toLowerCase().includes(wanted)],
  ]
  return fits
    .map((ways) => ways.map((way) => models.filter(way)).filter((group) => group.length > 0))
    .filter((groups) => groups.length > 0)
}

/** The models that may have been meant, the nearest first: misspelt by a few letters, or with a word in common. */
export function nearModels(name: string, models: readonly Named[], count = 3): string[] {
  const wanted = name.toLowerCase().slice(0, 100)
  const words = wordsOf(lastPart(wanted))
  return models
    .map((model) => ({
      reference: referenceOf(model),
      distance: Math.min(
        editDistance(wanted, model.id.toLowerCase()),
        editDistance(wanted, referenceOf(model).toLowerCase()),
        editDistance(lastPart(wanted), lastPart(model.id)),
      ),
      hasWord: wordsOf(lastPart(model.id)).some((word) => words.includes(word)),
    }))
    .filter(({ distance, hasWord }) => hasWord || distance <= Math.max(2, wanted.length / 3))
    .sort((left, right) => left.distance - right.distance)
    .slice(0, count)
    .map(({ reference }) => reference)
}

/** `claude-sonet-7` has the words `claude` and `sonet`. Version numbers say nothing of the family. */
function wordsOf(id: string): string[] {
  return id.split(/[^a-z]+/).filter((word) => word.length >= 3 && !fillers.has(word))
}

const fillers = new Set(['latest', 'preview', 'model', 'instruct'])

function lastPart(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1).toLowerCase()
}
