// SPDX-License-Identifier: Apache-2.0
// boot.js - loads the page's parts. A browser runs none of them if a single one does not come (a connection that was
// cut, a server that was just being restarted), and says nothing: then that is said, and all is fetched again.
const AGAIN_MS = 3000;

import("./app.js").catch((e) => {
	const banner = document.getElementById("banner");
	banner.hidden = false;
	banner.textContent = `A part of this page could not be loaded (${e.message}). Check that ingero dashboard is running. Retrying.`;
	setTimeout(() => location.reload(), AGAIN_MS);
});
