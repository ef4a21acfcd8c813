import type { RemoteSession } from '@tapetree/client'
import type { WireBlockedWrites } from '@tapetree/client/protocol'
import { changedFiles, spellInvisible } from '@tapetree/session/screen'
import { useCallback, useState, type ReactNode } from 'react'
import { Dialog } from '../dialog.tsx'
import { LoadState } from '../screen.tsx'
import { sentenceOf } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { Diff } from './diff.tsx'
import './rewind.css'

type Write = WireBlockedWrites['writes'][number]

/** The control files that the sandbox took back. The user applies or discards them one by one. */
export function BlockedDialog({ session, onClose }: { session: RemoteSession; onClose: () => void }): ReactNode {
  const load = useCallback(async () => (await session.run('blocked', {})) as WireBlockedWrites, [session])
  const { value, problem, reload } = useLoaded(load)
  const [failure, setFailure] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const settle = async (choice: 'apply' | 'discard', { id }: Write): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    await session.run('blocked', { [choice]: id }).catch((error: unknown) => setFailure(sentenceOf(error)))
    setBusy(false)
    reload()
  }
  return (
    <Dialog title="Blocked writes" onClose={onClose}>
      {failure !== undefined && (
        <p className="notice failed" role="alert">
          {failure}
        </p>
      )}
      {value ? (
        <>
          <p>
            {value.writes.length === 0
              ? 'The sandbox has taken back no file.'
              : 'Commands made these files, which control what other programs run.'}
          </p>
          {value.writes.map((write) => (
            <section key={write.id} aria-label={spellInvisible(write.path)}>
              <h3>
                <code>{spellInvisible(write.path)}</code>{' '}
                {write.is_occupied && <small>It cannot be applied: something is at its path now.</small>}
              </h3>
              <Contents write={write} />
              <div className="buttons">
                <button disabled={isBusy || write.is_occupied} onClick={() => void settle('apply', write)}>
                  Apply
                </button>
                <button className="quiet" disabled={isBusy} onClick={() => void settle('discard', write)}>
                  Discard
                </button>
              </div>
            </section>
          ))}
          <HomeWrites home={value.home} />
        </>
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </Dialog>
  )
}

function Contents({ write: { path: name, files, file_count: count } }: { write: Write }): ReactNode {
  const texts = files.filter(({ text }) => text !== undefined)
  const others = files.filter(({ text }) => text === undefined)
  return (
    <>
      {texts.length === 1 && texts[0]?.path !== name && (
        <p className="diff-name">{spellInvisible(texts[0]?.path ?? '')}</p>
      )}
      {texts.length > 0 && (
        <Diff files={texts.flatMap(({ path, text = '' }) => changedFiles({ path, content: text }, ''))} />
      )}
      <ul className="rewind-files">
        {others.map(({ path, target, size_bytes: bytes }) => (
          <li key={path}>
            <code>{spellInvisible(path)}</code>{' '}
            <small>{target === undefined ? `${bytes} bytes, not text` : `a link to ${spellInvisible(target)}`}</small>
          </li>
        ))}
        {files.some((file) => file.is_cut) && <li>Long files are not shown to their end.</li>}
        {count > files.length && <li>and {count - files.length} more</li>}
      </ul>
    </>
  )
}

function HomeWrites({ home }: Pick<WireBlockedWrites, 'home'>): ReactNode {
  if (!home || home.file_count === 0) return null
  return (
    <section aria-label="Files in the home folder">
      <h3>Written to the home folder</h3>
      <p>
        Later commands see these files. They are kept in <code>{spellInvisible(home.folder)}</code>, not in the home
        folder itself.
      </p>
      <ul className="rewind-files">
        {home.files.map(({ path }) => (
          <li key={path}>
            <code>~/{spellInvisible(path)}</code>
          </li>
        ))}
        {home.file_count > home.files.length && <li>and {home.file_count - home.files.length} more</li>}
      </ul>
    </section>
  )
}
