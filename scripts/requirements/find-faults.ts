import type { Manifest } from '../../tests/requirements/requirement.ts'
import type { Citation } from './read-citations.ts'
import type { Section, Specification } from './specification.ts'

interface Checked {
  manifests: readonly Manifest[]
  citations: readonly Citation[]
  /** Without it, the lines of the specification are not checked. */
  specification?: Specification | undefined
}

/** Returns one sentence for each fault in the manifests and in the scenarios that prove them. */
export function findFaults({ manifests, citations, specification }: Checked): string[] {
  return [
    ...citationFaults(manifests, citations),
    ...manifests.flatMap(requirementFaults),
    ...(specification === undefined ? [] : documentFaults(manifests, specification)),
  ]
}

const maxCited = 3

function citationFaults(manifests: readonly Manifest[], citations: readonly Citation[]): string[] {
  const all = manifests.flatMap(({ requirements }) => requirements)
  const known = new Set(all.map(({ id }) => id))
  const cited = new Set(citations.flatMap(({ ids }) => ids))
  return [
    ...repeated(all.map(({ id }) => id)).map((id) => `Two requirements have the id ${id}.`),
    ...all.flatMap(({ id, open, excused }) => {
      const state = open !== undefined ? 'open' : excused !== undefined ? 'excused' : undefined
      if (state === undefined) return cited.has(id) ? [] : [`No scenario proves ${id}.`]
      return cited.has(id) ? [`${id} is ${state}, but a scenario proves it.`] : []
    }),
    ...citations.flatMap(({ file, line, ids }) => [
      ...ids.filter((id) => !known.has(id)).map((id) => `${file}:${line}: there is no requirement ${id}.`),
      ...(ids.length > maxCited
        ? [`${file}:${line}: a scenario cites ${ids.length} requirements, at most ${maxCited} are allowed.`]
        : []),
      ...(ids.length === 0
        ? [`${file}:${line}: a scenario cites no requirement, or none that this check can read.`]
        : []),
    ]),
  ]
}

function requirementFaults({ requirements }: Manifest): string[] {
  return requirements.flatMap(({ id, says, lines }) => [
    ...(says === '' ? [`${id} says nothing.`] : []),
    ...(Object.values(lines).flat().length === 0 ? [`${id} stands for no line of the specification.`] : []),
  ])
}

function documentFaults(manifests: readonly Manifest[], specification: Specification): string[] {
  const known = new Set(manifests.map(({ document }) => document))
  return [
    ...[...specification.keys()].filter((name) => !known.has(name)).map((name) => `${name}.md has no manifest.`),
    ...manifests.flatMap((manifest) => {
      const sections = specification.get(manifest.document)
      return sections === undefined ? [`${manifest.document}.md is missing.`] : lineFaults(manifest, sections)
    }),
  ]
}

function lineFaults({ document, requirements, withoutBehavior }: Manifest, sections: readonly Section[]): string[] {
  const present = new Set(
    sections.flatMap(({ heading, statements }) => statements.map(({ digest }) => placeOf(heading, digest))),
  )
  const required = requirements.flatMap(({ id, lines }) =>
    Object.entries(lines).flatMap(([heading, digests]) => digests.map((digest) => ({ owner: id, heading, digest }))),
  )
  const listed = Object.entries(withoutBehavior).flatMap(([heading, kinds]) =>
    Object.values(kinds)
      .flat()
      .map((digest) => ({ owner: document, heading, digest })),
  )
  const requiredPlaces = new Set(required.map(({ heading, digest }) => placeOf(heading, digest)))
  const accounted = new Set([...required, ...listed].map(({ heading, digest }) => placeOf(heading, digest)))
  return [
    ...sections.flatMap(({ heading, statements }) =>
      statements
        .filter(({ digest }) => !accounted.has(placeOf(heading, digest)))
        .map(({ digest, text }) => `${document}, "${heading}": the manifest does not account for ${digest}: ${text}`),
    ),
    ...emptyHeadings(sections).map((heading) => `${document}: there are no lines below the heading "${heading}".`),
    ...[...required, ...listed]
      .filter(({ heading, digest }) => !present.has(placeOf(heading, digest)))
      .map(({ owner, heading, digest }) => `${owner}: "${heading}" has no line with the digest ${digest}.`),
    ...listed
      .filter(({ heading, digest }) => requiredPlaces.has(placeOf(heading, digest)))
      .map(
        ({ heading, digest }) =>
          `${document}, "${heading}": ${digest} is listed without behavior, but a requirement stands for it.`,
      ),
  ]
}

function placeOf(heading: string, digest: string): string {
  return `${heading}\n${digest}`
}

/** A heading with deeper headings below it only groups them. */
function emptyHeadings(sections: readonly Section[]): string[] {
  return sections
    .filter(({ statements, level }, index) => statements.length === 0 && (sections[index + 1]?.level ?? 0) <= level)
    .map(({ heading }) => heading)
}

function repeated(values: readonly string[]): string[] {
  return values.filter((value, index) => values.indexOf(value) !== index)
}
