/**
 * Keeps the sidecar's part of the Kubernetes client small. The bundler parts code by whole files, and
 * the client's `config.js` reaches, through one list of re-exports, the classes of every kind of object
 * there is. Beside the injector, which does use them, they would land in the sidecar's chunk: 3.4 MB
 * and 60 MiB instead of a quarter. So `config.js` is bundled once more on its own, where what it does
 * not use falls away.
 */
import { join } from 'node:path'
import { build } from 'esbuild'

const wanted = '@kubernetes/client-node/dist/config.js'
const chunk = 'kube-config.mjs'

/** For the main build: leaves the import to the chunk that `bundleKubeConfig` writes. */
export const kubeConfigApart = {
  name: 'kube-config-apart',
  setup(main) {
    main.onResolve({ filter: /^@kubernetes\/client-node\/dist\/config\.js$/ }, () => ({
      // Whatever imports it is loaded late, and so a chunk beside it.
      path: `./${chunk}`,
      external: true,
    }))
  },
}

/** Writes the chunk into `folder`, with the options of the main build; resolves with its metafile. */
export async function bundleKubeConfig(folder, options) {
  const { metafile } = await build({
    ...options,
    stdin: {
      contents: `export { KubeConfig } from '${wanted}'`,
      resolveDir: options.absWorkingDir,
    },
    outfile: join(folder, chunk),
  })
  return metafile
}
