import type { Manifest, Section } from '../../tests/requirements/requirement.ts'
import type { Citation } from './read-citations.ts'

/** What is wrong with the manifests and the scenarios that prove them, a sentence each. */
export function findFaults(manifests: readonly Manifest[], citations: readonly Citation[]): string[] {
  return [...citationFaults(manifests, citations), ...manifests.flatMap(manifestFaults)]
}

const maxCited = 3

function citationFaults(manifests: readonly Manifest[], citations: readonly Citation[]): string[] {
  const all = manifests.flatMap(({ requirements }) => requirements)
  const ids = all.map(({ id }) => id)
  const deferred = all.filter((requirement) => requirement.deferred !== undefined)
  const later = new Set(deferred.map(({ id }) => id))
  const known = new Set(ids)
  const cited = new Set(citations.flatMap((citation) => citation.ids))
  return [
    ...repeated(ids).map((id) => `Two requirements have the id ${id}.`),
    ...ids.filter((id) => !cited.has(id) && !later.has(id)).map((id) => `No scenario proves ${id}.`),
    ...deferred
      .filter(({ id }) => cited.has(id))
      .map(({ id, deferred: part }) => `${id} is deferred to the ${part}, and a scenario proves it.`),
    ...citations.flatMap(({ file, line, ids: named }) => [
      ...named.filter((id) => !known.has(id)).map((id) => `${file}:${line}: there is no requirement ${id}.`),
      ...(named.length > maxCited
        ? [`${file}:${line}: a scenario cites ${named.length} requirements, at most ${maxCited} are allowed.`]
        : []),
      ...(named.length === 0 ? [`${file}:${line}: a scenario cites nothing that can be read from its text.`] : []),
    ]),
  ]
}

function manifestFaults(manifest: Manifest): string[] {
  const { document, requirements, outline, noBehaviour } = manifest
  const items = outline.flatMap((section) => section.items)
  const excused = new Set(noBehaviour.map(({ text }) => text))
  const isQuoted = (item: string): boolean => requirements.some(({ quote }) => covers(quote, item))
  const bare = headingsWithout(outline, (item) => isQuoted(item))
  return [
    ...requirements
      .filter(({ quote }) => !isVerbatim(quote, items))
      .map(({ id }) => `${id} quotes what ${document} does not say.`),
    ...items
      .filter((item) => !excused.has(item) && !isQuoted(item))
      .map((item) => `${document}: no requirement quotes: ${item}`),
    ...bare
      .filter((heading) => !excused.has(heading))
      .map((heading) => `${document}: nothing below this heading is quoted: ${heading}`),
    ...noBehaviour
      .filter(({ text }) => !bare.includes(text) && (!items.includes(text) || isQuoted(text)))
      .map(({ text }) => `${document}: excused, but not there or quoted: ${text}`),
    ...noBehaviour
      .filter(({ reason }) => reason === '')
      .map(({ text }) => `${document}: excused for no reason: ${text}`),
  ]
}

/** A part of one item, or several whole ones. */
function isVerbatim(quote: string, items: readonly string[]): boolean {
  if (items.some((item) => item.includes(quote))) return true
  let rest = quote
  while (rest !== '') {
    const start = items.find((item) => rest === item || rest.startsWith(`${item}\n`))
    if (start === undefined) return false
    rest = rest.slice(start.length + 1)
  }
  return quote !== ''
}

function covers(quote: string, item: string): boolean {
  return `\n${quote}\n`.includes(`\n${item}\n`) || (quote !== '' && item.includes(quote))
}

/** A heading stands for everything up to the next one of its level. */
function headingsWithout(outline: readonly Section[], isQuoted: (item: string) => boolean): string[] {
  return outline
    .filter(({ heading }, index) => {
      const end = outline.findIndex((other, at) => at > index && levelOf(other.heading) <= levelOf(heading))
      const below = outline.slice(index, end === -1 ? outline.length : end)
      return !below.some((section) => section.items.some(isQuoted))
    })
    .map(({ heading }) => heading)
}

function levelOf(heading: string): number {
  return /^#*/.exec(heading)?.[0].length ?? 0
}

function repeated(values: readonly string[]): string[] {
  return values.filter((value, index) => values.indexOf(value) !== index)
}
