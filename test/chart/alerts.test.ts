/** Alerts and the dashboard's queries as promtool reads them. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { root } from './helm.js'

const { promtool } = inject('peers')
const folder = mkdtempSync(join(tmpdir(), 'alerts-'))
const alerts = `${root}helm/grapevine/files/alerts.yaml`
const tests = `${root}test/chart/alerts.promtool.yaml`

afterAll(() => rmSync(folder, { recursive: true }))

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(promtool!, args, { encoding: 'utf8' })
  return { status, text: stdout + stderr }
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[]
}

describe.skipIf(promtool === null)('promtool', () => {
  test('finds no fault with the alerts', () => {
    expect(run('check', 'rules', alerts)).toMatchObject({ status: 0 })
  })

  test('sees each alert fire on what it is for, and stay silent else', () => {
    copyFileSync(alerts, join(folder, 'alerts.yaml'))
    copyFileSync(tests, join(folder, 'tests.yaml'))
    const { status, text } = run('test', 'rules', join(folder, 'tests.yaml'))
    expect(text).toContain('SUCCESS')
    expect(status).toBe(0)
  })

  test('is given a test that fires for every alert', () => {
    const { groups } = parse(readFileSync(alerts, 'utf8')) as Rules
    const names = groups.flatMap(group => group.rules.map(rule => rule.alert))
    const { tests: cases } = parse(readFileSync(tests, 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[]
    }
    const fired = cases
      .flatMap(entry => entry.alert_rule_test)
      .filter(entry => entry.exp_alerts.length > 0)
      .map(entry => entry.alertname)
    expect([...new Set(fired)].sort()).toEqual([...names].sort())
  })

  test('reads every query of the dashboard', () => {
    const { panels } = JSON.parse(
      readFileSync(`${root}helm/grapevine/files/dashboard.json`, 'utf8'),
    ) as { panels: { targets?: { expr: string }[] }[] }
    const expressions = panels.flatMap(panel => panel.targets ?? []).map(target => target.expr)
    expect(expressions.length).toBeGreaterThan(20)
    const rules = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(namespace|ring|rule)/g, '.*'),
    }))
    const file = join(folder, 'queries.yaml')
    writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }))
    expect(run('check', 'rules', file)).toMatchObject({ status: 0 })
  })
})
