import { existsSync } from 'node:fs'
import { isInside } from '../../../util/is-inside.ts'
import { exactPath } from '../../paths/path-pattern.ts'
import { joinRaw, realPath } from '../../paths/real-path.ts'
import { isSecretPath, mayBeSecret, mayListSecrets } from '../../paths/secret-files.ts'
import { isLink, isPlainName, type Survey } from '../../paths/survey.ts'
import type { GitCall } from './git-commands.ts'
import { trackedFiles } from './git-index.ts'
import { findRepository, hashOf } from './git-repository.ts'
import { readPlainFile } from '../words/plain-file.ts'
import { hasOption, valuesOf, type FileUse, type HistoryShown, type ParsedCall } from './program-rule.ts'
import { literal, textOf, type Word } from '../words/word.ts'

/**
 * Files whose contents a git call shows from the repository, or a sentence on why that is unknown. The contents of
 * tracked secrets count as read, and so does everything below the paths that limit the call, so that rules apply to it.
 */
export function filesShown({ rule, call }: NonNullable<GitCall['command']>, folder: string): FileUse[] | string {
  const shown = rule.showsHistory?.(call)
  if (shown === undefined) return []
  const named: FileUse[] = []
  for (const text of [...call.operands, ...valuesOf(call, '-L')].map(textOf)) {
    for (const path of pathsNamed(text ?? '')) {
      if (/[*?[]/.test(path) && mayListSecrets(path)) return `\`${path}\` may match a file with a secret`
      if (mayBeSecret(exactPath(path))) named.push(fileAt(folder, path))
    }
  }
  if (shown === 'names') return named
  const repository = openRepository(folder)
  if (repository === undefined) return named
  const limits = limitsOf(shown === 'matches' ? withoutPattern(call) : call, { shown, folder }) ?? [repository.root]
  const { files } = repository
  if (!files) return `the index of ${repository.root} cannot be read`
  const secrets = secretsIn(repository.root, files).filter((path) => limits.some((limit) => isInside(path, limit)))
  // One is enough to ask; a few more inform the user.
  return [
    ...named,
    ...limits.map((path) => fileAt('/', path, true)),
    ...secrets.slice(0, 5).map((path) => fileAt('/', path)),
  ]
}

/** What is known of the files that a repository tracks. Undefined if that is unknown. */
export function surveyTracked(folder: string, wishes: readonly Word[]): Survey | undefined {
  const repository = openRepository(folder)
  if (repository === undefined) return { isPlain: true, hasDash: false, links: [], secrets: [] }
  const { root, files } = repository
  if (!files || files.length > maxFiles) return undefined
  return {
    isPlain: files.every(isPlainName),
    hasDash: files.some((name) => /(?:^|\/)-/.test(name)),
    links: files.filter(linkFinder(root)).map((name) => `${root}/${name}`),
    secrets: secretsIn(root, files.filter(wantedBy(wishes))),
  }
}

const maxFiles = 20_000

/** Whether a file, or a folder above it, is a link. */
function linkFinder(root: string): (name: string) => boolean {
  const known = new Map<string, boolean>([['', false]])
  const find = (name: string): boolean => {
    let found = known.get(name)
    if (found === undefined) {
      found = find(name.slice(0, Math.max(0, name.lastIndexOf('/')))) || isLink(`${root}/${name}`)
      known.set(name, found)
    }
    return found
  }
  return find
}

/** Patterns such as `*.ts` in a listing exclude all other files; other words may match any file. */
function wantedBy(wishes: readonly Word[]): (name: string) => boolean {
  const texts = wishes.map((word) => textOf(word) ?? '').filter((text) => !text.startsWith('-'))
  const endings = texts.slice(1).map((text) => /^\*(\.[A-Za-z0-9]+)$/.exec(text)?.[1])
  if (texts[0] !== 'ls-files' || endings.length === 0) return () => true
  return (name) => endings.some((ending) => ending === undefined || name.endsWith(ending))
}

function fileAt(folder: string, path: string, isRecursive = false): FileUse {
  return { word: literal(path), isRecursive, folders: [folder] }
}

/** Every path that `HEAD:.env`, `:0:.env`, `:(icase).ENV`, `:/.env` or `1,5:.env` may refer to. */
function pathsNamed(text: string): string[] {
  const starts = [...text.matchAll(/:/g)].map(({ index }) => index + 1)
  return [0, ...starts]
    .map((start) =>
      text
        .slice(start)
        .replace(/^\([^)]*\)/, '')
        .replace(/^[/!^]+/, ''),
    )
    .filter((path) => path !== '')
}

/** The paths that limit a call, as far as they can only be paths. Undefined if it may show any file. */
function limitsOf(call: ParsedCall, { shown, folder }: { shown: HistoryShown; folder: string }): string[] | undefined {
  const paths = linesNamed(call) ?? objectsNamed(call) ?? (shown === 'files' ? [] : pathspecsOf(call, folder))
  const areKnown = paths.length > 0 && paths.every((path) => path !== undefined && /^[^:*?[\\][^*?[\\]*$/.test(path))
  return areKnown ? paths.map((path) => realPath(joinRaw(folder, path ?? ''))) : undefined
}

/** The search pattern may look like a file name, but is none. */
function withoutPattern(call: ParsedCall): ParsedCall {
  return hasOption(call, '-e -f') ? call : { ...call, operands: call.operands.slice(1) }
}

type Paths = (string | undefined)[]

/** `-L 1,5:file`: only these lines are shown. */
function linesNamed(call: ParsedCall): Paths | undefined {
  const lines = valuesOf(call, '-L').map((word) => /^[^:]*(?::[^:]*)?:([^:]+)$/.exec(textOf(word) ?? '')?.[1])
  return lines.length > 0 ? lines : undefined
}

/** `HEAD:file`, if all operands have this form. */
function objectsNamed({ operands }: ParsedCall): Paths | undefined {
  const objects = operands.map((word) => /^[^:]+:([^:]+)$/.exec(textOf(word) ?? '')?.[1])
  return objects.length > 0 && !objects.includes(undefined) ? objects : undefined
}

/**
 * The operands after `--`; without it, those that are files. Git rejects a word that may be a file as well as a commit.
 */
function pathspecsOf({ operands, behindDashes }: ParsedCall, folder: string): Paths {
  const texts = (behindDashes ?? operands).map(textOf)
  return behindDashes ? texts : texts.filter((text) => text === undefined || existsSync(joinRaw(folder, text)))
}

interface OpenRepository {
  root: string
  /** Paths of all tracked files; undefined if the index cannot be read. */
  files: string[] | undefined
}

function openRepository(folder: string): OpenRepository | undefined {
  const found = findRepository(realPath(folder))
  if (typeof found !== 'object') return undefined
  return { root: realPath(found.root), files: trackedFiles(found.own, hashOf(found)) }
}

function secretsIn(root: string, files: readonly string[]): string[] {
  return files
    .filter((name) => isSecretPath(`/${name}`))
    .map((name) => `${root}/${name}`)
    .filter((path) => !isProjectSettings(path))
}

/** Many projects track settings of their package manager, which are not secret unless they contain a credential. */
function isProjectSettings(path: string): boolean {
  if (!/\/\.(?:npmrc|yarnrc\.yml)$/.test(path) || isLink(path) || !existsSync(path)) return false
  const settings = readPlainFile(path, { maxBytes: 64 * 1024 })?.toString('utf8')
  return settings !== undefined && !/auth|pass|token|secret|key|cert|user/i.test(settings)
}
