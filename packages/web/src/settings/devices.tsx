import type { RestResults } from '@tapetree/client/types'
import { encode } from 'uqr'
import { useState, type ReactNode } from 'react'
import { CopyButton } from '../copy-button.tsx'
import { timeAgo } from '../list/describe-session.ts'
import { LoadState } from '../screen.tsx'
import { baseUrl, mayDo, rest, rights, rolesWithin, sentenceOf, type Caller, type Role } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'

type Token = RestResults['tokens']['tokens'][number]

/** Every token is a device or a program. */
export function Devices({ caller }: { caller: Caller }): ReactNode {
  if (!mayDo(caller.role, 'drive'))
    return (
      <p className="faint">
        Only devices with the role drive see and pair others. This device has the role {caller.role}.
      </p>
    )
  return (
    <>
      <PairAnother role={caller.role} />
      <DeviceList caller={caller} />
    </>
  )
}

function DeviceList({ caller }: { caller: Caller }): ReactNode {
  const { value, problem, reload } = useLoaded(loadTokens)
  const [notice, setNotice] = useState<{ text: string; kind: 'good' | 'failed' }>()
  const [asking, setAsking] = useState<string>()
  const revoke = async ({ id, name }: Token): Promise<void> => {
    try {
      await rest.revokeToken(id)
      setNotice({ text: `Revoked ${name ?? id}.`, kind: 'good' })
      reload()
    } catch (error) {
      setNotice({ text: sentenceOf(error), kind: 'failed' })
    }
  }
  return (
    <section className="card" aria-labelledby="devices">
      <h2 id="devices">Devices and programs</h2>
      <p role="status" className={notice && `notice ${notice.kind}`}>
        {notice?.text}
      </p>
      {!value && <LoadState problem={problem} onRetry={reload} />}
      <ul className="devices">
        {value?.map((token) => (
          <li key={token.id}>
            <div>
              <b>{token.name ?? token.id}</b> {token.id === caller.tokenId && <span className="tag">this device</span>}
              <small>{factsOf(token).join(' · ')}</small>
            </div>
            <span className="tag">{rights[token.role].name}</span>
            {asking === token.id ? (
              <span className="buttons">
                <button className="no small" onClick={() => void revoke(token)}>
                  Revoke now
                </button>
                <button className="quiet small" autoFocus onClick={() => setAsking(undefined)}>
                  Keep
                </button>
              </span>
            ) : (
              <button
                className="quiet small"
                aria-label={`Revoke ${token.name ?? token.id}`}
                onClick={() => setAsking(token.id)}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      <p className="faint">Revoking a device also revokes those that it paired. It ends their connections at once.</p>
    </section>
  )
}

async function loadTokens(signal: AbortSignal): Promise<Token[]> {
  const { tokens } = await rest.tokens(signal)
  return tokens.toSorted((left, right) => Date.parse(right.createdAt) - Date.parse(left.createdAt))
}

function factsOf({ createdAt, expiresAt, folder }: Token): string[] {
  return [
    `paired ${timeAgo(createdAt, Date.now())}`,
    folder === undefined ? undefined : `only ${folder}`,
    expiresAt === undefined ? undefined : `until ${new Date(expiresAt).toLocaleString()}`,
  ].filter((fact) => fact !== undefined)
}

function PairAnother({ role: own }: { role: Role }): ReactNode {
  const [role, setRole] = useState<Role>('drive')
  const [offer, setOffer] = useState<{ link: string; code: string; until: string; role: Role }>()
  const [problem, setProblem] = useState<string>()
  const begin = async (): Promise<void> => {
    setProblem(undefined)
    try {
      const { code, expiresAt } = await rest.beginPairing({ role, name: 'paired device' })
      const until = new Date(expiresAt).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
      setOffer({ link: `${baseUrl}#pair=${code}`, code, until, role })
    } catch (error) {
      setProblem(sentenceOf(error))
    }
  }
  return (
    <section className="card" aria-labelledby="pair-another">
      <h2 id="pair-another">Pair another device</h2>
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      <div className="with-button">
        <label className="field">
          Role of the new device
          <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {rolesWithin(own).map((each) => (
              <option key={each} value={each}>
                {rights[each].name}: {rights[each].meaning}
              </option>
            ))}
          </select>
        </label>
        <button onClick={() => void begin()}>{offer ? 'Make another link' : 'Make a link'}</button>
      </div>
      <div role="status">
        {offer && (
          <div className="offer">
            <QrCode text={offer.link} />
            <div>
              <p>
                Scan the code with the other device, or open the link there. It works once, until {offer.until}, and
                grants the role {rights[offer.role].name}.
              </p>
              <p className="link-line">
                <code>{offer.link}</code> <CopyButton text={offer.link} label="Copy link" />
              </p>
              <p>
                To type it: <code>{offer.code}</code>
              </p>
              {isThisMachine && (
                <p className="notice">
                  This page was opened at an address that only this computer can reach. For a phone, start the server
                  with --host 0.0.0.0 --self-signed or behind a proxy, open this page at its address, and make a link
                  there.
                </p>
              )}
            </div>
          </div>
        )}
      </div>
    </section>
  )
}

const isThisMachine = /^(localhost|127\.|\[::1\])/.test(location.hostname)

/** Dark on light in both themes: many cameras read nothing else. */
function QrCode({ text }: { text: string }): ReactNode {
  const { size, data } = encode(text, { border: 2 })
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  return (
    <svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code of the pairing link">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" shapeRendering="crispEdges" />
    </svg>
  )
}
